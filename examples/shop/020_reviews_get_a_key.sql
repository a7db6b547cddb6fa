-- The table had no key; the column numbers the rows that there are.
alter table reviews add column id bigserial;
alter table reviews add primary key (id);
