begin;
create table items (id bigserial primary key, name text not null, stock integer not null default 0, reserved integer not null default 0);
insert into items (name, stock) select 'item ' || i, i from generate_series(1, 50) as g(i);
commit;
