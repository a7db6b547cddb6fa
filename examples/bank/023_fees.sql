begin;
create table fees (id serial primary key, name text not null, amount integer not null default 0, taken bigint not null default 0);
insert into fees (name, amount) values ('card', 5), ('abroad', 9);
commit;
