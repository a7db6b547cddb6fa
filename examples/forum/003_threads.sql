begin;
create table threads (id bigserial primary key, forum_id integer not null references forums (id), author bigint references members (id) on delete set null, title text not null, replies integer not null default 0);
insert into threads (forum_id, author, title) select 1 + i % 3, i, 'thread ' || i from generate_series(1, 30) as g(i);
commit;
