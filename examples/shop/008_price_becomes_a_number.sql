alter table products alter column price type numeric(10, 2) using price::numeric(10, 2);
