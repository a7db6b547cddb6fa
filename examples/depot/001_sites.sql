begin;
create table sites (code text primary key, name text not null, shipped bigint not null default 0, received bigint not null default 0);
insert into sites (code, name) values ('ams', 'Amsterdam'), ('lyo', 'Lyon'), ('osl', 'Oslo');
commit;
