alter table order_lines
  add constraint order_lines_order_fkey foreign key (order_id) references orders (id) on delete cascade,
  add constraint order_lines_product_fkey foreign key (product_id) references products (id);
