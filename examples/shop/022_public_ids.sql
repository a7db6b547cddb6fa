alter table orders add column public_id uuid not null default gen_random_uuid();
create unique index orders_public_id on orders (public_id);
