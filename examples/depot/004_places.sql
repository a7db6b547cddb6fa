create table places (id bigserial primary key, shelf_id integer not null references shelves (id), item_id bigint not null references items (id), amount integer not null default 0);
