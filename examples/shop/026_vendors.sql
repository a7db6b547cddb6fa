create table vendors (id int primary key, name text not null unique);
insert into vendors values (1, 'Anton'), (2, 'Berta');
-- Every product has one from now on: the value of the rows that there are is the default.
alter table products add column vendor_id int not null default 1 references vendors (id);
alter table products alter column vendor_id drop default;
