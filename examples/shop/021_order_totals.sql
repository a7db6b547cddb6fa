alter table orders add column shipping numeric(8, 2) not null default 4.90;
alter table orders add column goods numeric(10, 2) not null default 0;
alter table orders add column total numeric(11, 2) generated always as (goods + shipping) stored;
