alter table orders alter column total type numeric(12, 2);
