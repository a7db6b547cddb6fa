alter table lines add column returned integer not null default 0;
