create table letters (id bigserial primary key, account_id bigint references accounts (id) on delete set null, body text, weight integer not null default 20);
