begin;
create table members (id bigserial primary key, name text not null, posts integer not null default 0, karma integer not null default 0);
insert into members (name) select 'member ' || i from generate_series(1, 40) as g(i);
commit;
