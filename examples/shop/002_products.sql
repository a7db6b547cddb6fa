begin;
create table products (
  id serial primary key,
  sku varchar(20) not null,
  title text not null,
  price text not null,
  stock smallint not null default 0 check (stock >= 0)
);
insert into products (sku, title, price, stock)
  select 'SKU-' || i, 'product ' || i, (5 + i % 50)::text, i % 100 from generate_series(1, 200) g(i);
commit;
