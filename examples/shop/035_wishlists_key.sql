alter table wishlists alter primary key using columns (customer_id, product_id);
