alter table orders add column note text default '';
