alter table posts add column edits integer not null default 0;
