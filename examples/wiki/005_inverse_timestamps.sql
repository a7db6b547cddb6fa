-- Sorted backwards by a number, as indexes had one direction only.
alter table old add column inverse_timestamp bigint not null default 0;
create index old_inverse on old (inverse_timestamp);
