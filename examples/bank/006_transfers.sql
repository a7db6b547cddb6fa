create table transfers (id bigserial primary key, source bigint references accounts (id), target bigint references accounts (id), amount bigint not null, made_at timestamptz default now());
