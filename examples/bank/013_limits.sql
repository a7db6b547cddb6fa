alter table accounts add column overdraft integer not null default 0;
