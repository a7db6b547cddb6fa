begin;
create table forums (id serial primary key, title text not null, threads integer not null default 0, posts bigint not null default 0);
insert into forums (title) values ('News'), ('Help'), ('Off topic');
commit;
