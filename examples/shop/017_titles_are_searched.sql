create index products_title_lower on products (lower(title));
create index products_in_stock on products (price desc) where stock > 0;
