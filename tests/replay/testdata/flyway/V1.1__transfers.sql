create table transfers (
    id uuid primary key default gen_random_uuid(),
    source_id bigint not null references accounts (id),
    target_id bigint not null references accounts (id),
    amount numeric(19, 4) not null,
    constraint amount_positive check (amount > 0)
);
create index transfers_source on transfers (source_id, id);
