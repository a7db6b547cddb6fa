begin;
create table tags (id serial primary key, name text not null, used integer not null default 0);
insert into tags (name) values ('sql'), ('parquet'), ('spark');
commit;
