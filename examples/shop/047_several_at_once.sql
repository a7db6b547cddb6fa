alter table products
  add column weight_grams int,
  add column tags text[] default '{}',
  add column attributes jsonb not null default '{}',
  alter column name type varchar(200),
  add constraint products_weight check (weight_grams > 0);
