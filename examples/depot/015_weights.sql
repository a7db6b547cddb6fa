alter table items add column grams integer not null default 100;
