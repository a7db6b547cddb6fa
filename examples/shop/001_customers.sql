-- The shop opens: customers leave a name and an address.
begin;
create table customers (
  id bigserial primary key,
  name text not null,
  email text,
  city text,
  created_at timestamptz not null default now()
);
insert into customers (name, email, city)
  select 'customer ' || i, 'customer' || i || '@example.com', (array['Bonn', 'Kiel', 'Ulm'])[1 + i % 3]
  from generate_series(1, 300) g(i);
commit;
