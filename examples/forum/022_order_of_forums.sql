alter table forums add column position integer not null default 0;
