alter table orders add column coupon bigint references coupons (number) on delete set null;
create index orders_coupon on orders (coupon);
