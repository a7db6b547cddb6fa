begin;
create table tellers (id serial primary key, branch_id bigint not null references branches (id), name text, handled integer not null default 0);
insert into tellers (branch_id, name) values (1, 'Ada'), (1, 'Ben'), (2, 'Cleo'), (3, 'Dan');
commit;
