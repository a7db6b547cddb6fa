begin;
create table payments (
  id bigserial primary key,
  order_id bigint not null references orders (id),
  amount numeric(10, 2) not null check (amount > 0),
  paid_at timestamptz default now(),
  method text not null default 'card' check (method in ('card', 'invoice', 'cash'))
);
insert into payments (order_id, amount) select i, 10 + i % 90 from generate_series(1, 400) g(i);
commit;
