create table if not exists vendors (id int primary key);
alter table products add column if not exists weight_grams int;
create index if not exists orders_coupon on orders (coupon);
drop index if exists nowhere;
alter table if exists nowhere add column n int;
