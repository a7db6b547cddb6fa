begin;
create table carriers (code text primary key, parcels bigint not null default 0, late integer not null default 0);
insert into carriers (code) values ('bike'), ('rail'), ('ship');
commit;
