create table orders (id bigserial primary key, supplier_id integer not null references suppliers (id), total integer not null default 0, ordered_on date default current_date);
