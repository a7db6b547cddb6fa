alter table branches add column region text default 'north';
update branches set region = 'north' where id <= 3;
