alter table products add constraint products_price_positive check (price > 0) not valid;
alter table products validate constraint products_price_positive;
