create table reports (id bigserial primary key, post_id bigint not null references posts (id) on delete cascade, reason text, seen integer not null default 0);
