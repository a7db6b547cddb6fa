alter sequence coupon_numbers increment 1;
alter sequence coupon_numbers owned by coupons.number;
