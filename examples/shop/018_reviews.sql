begin;
create table reviews (
  product_id int not null references products (id) on delete cascade,
  customer_id bigint references customers (id) on delete set null,
  stars smallint not null,
  body text
);
insert into reviews select 1 + i % 200, 1 + i % 300, 1 + i % 5, 'review ' || i from generate_series(1, 400) g(i);
commit;
