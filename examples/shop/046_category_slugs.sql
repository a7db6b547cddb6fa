alter table categories add column slug text generated always as (lower(name)) stored;
alter table categories add constraint categories_slug_key unique (slug);
