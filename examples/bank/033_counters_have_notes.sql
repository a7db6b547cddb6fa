alter table counters add column note text default '';
