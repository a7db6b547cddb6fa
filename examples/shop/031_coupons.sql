begin;
create sequence coupon_numbers start 1000 increment 10;
create table coupons (
  number bigint primary key default nextval('coupon_numbers'),
  percent int not null check (percent > 0 and percent <= 100),
  valid_until date
);
insert into coupons (percent) values (5), (10), (20);
commit;
