update branches set region = 'north' where region is null;
alter table branches alter column region set not null;
