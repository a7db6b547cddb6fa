alter table products add constraint products_sku_key unique (sku);
