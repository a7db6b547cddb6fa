alter index products_title_lower rename to products_name_lower;
alter table products rename constraint products_price_positive to products_price_check;
