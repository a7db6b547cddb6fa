begin;
alter table letters add column postage integer not null default 1;
update letters set postage = 2 where weight > 20;
commit;
