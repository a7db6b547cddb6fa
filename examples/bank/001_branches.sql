begin;
create table branches (id bigint primary key, name text not null, balance bigint not null default 0);
insert into branches (id, name) values (1, 'Main street'), (2, 'Harbour'), (3, 'Old town');
commit;
