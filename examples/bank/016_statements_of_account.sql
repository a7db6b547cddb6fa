create table statements (id bigserial primary key, account_id bigint not null references accounts (id) on delete cascade, pages integer not null default 1, printed_at timestamptz);
