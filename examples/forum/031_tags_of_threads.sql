create table thread_tags (id bigserial primary key, thread_id bigint not null references threads (id) on delete cascade, tag_id integer not null references tags (id));
