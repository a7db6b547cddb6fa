create table counts (id bigserial primary key, place_id bigint not null references places (id) on delete cascade, found integer not null default 0, counted_at timestamptz default now());
