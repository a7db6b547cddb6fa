begin;
create table badges (code text primary key, name text not null, given integer not null default 0);
insert into badges (code, name) values ('first', 'First post'), ('old', 'One year'), ('kind', 'Kind');
commit;
