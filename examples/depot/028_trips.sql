begin;
create table trips (id serial primary key, carrier text not null references carriers (code), stops integer not null default 0, km integer not null default 0);
insert into trips (carrier) values ('bike'), ('rail');
commit;
