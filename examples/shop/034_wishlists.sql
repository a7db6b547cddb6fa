begin;
create table wishlists (
  customer_id bigint not null references customers (id) on delete cascade,
  product_id int not null references products (id) on delete cascade,
  added timestamptz not null default now(),
  unique (customer_id, product_id)
);
insert into wishlists (customer_id, product_id) select i, 1 + i % 200 from generate_series(1, 300) g(i);
commit;
