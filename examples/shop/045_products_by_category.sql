create table categories as select i as id, 'category ' || i as name from generate_series(1, 12) g(i);
alter table categories add primary key (id);
alter table categories alter column name set not null;
alter table products add column category_id int references categories (id);
create index on products (category_id);
