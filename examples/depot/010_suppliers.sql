begin;
create table suppliers (id serial primary key, name text not null, orders integer not null default 0);
insert into suppliers (name) values ('North'), ('South');
commit;
