begin;
create table posts (id bigserial primary key, thread_id bigint not null references threads (id) on delete cascade, author bigint references members (id) on delete set null, body text, likes integer not null default 0);
insert into posts (thread_id, author, body) select 1 + i % 30, 1 + i % 40, 'post ' || i from generate_series(1, 90) as g(i);
commit;
