begin;
create table counters (name text primary key, value bigint not null default 0);
insert into counters (name) values ('accounts'), ('transfers'), ('letters');
commit;
