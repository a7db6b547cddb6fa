begin;
create table addresses (
  id bigint generated always as identity primary key,
  customer_id bigint not null references customers (id) on delete cascade,
  street text not null,
  postcode char(5) not null,
  city text not null,
  country text not null default 'DE'
);
insert into addresses (customer_id, street, postcode, city)
  select i, 'street ' || i, lpad(i::text, 5, '0'), 'Bonn' from generate_series(1, 300) g(i);
commit;
