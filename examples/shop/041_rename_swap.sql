-- The page views are counted elsewhere: the new table takes the name of the old one.
create table visits_daily (id bigserial primary key, page text not null, seconds bigint);
begin;
alter table visits rename to visits_raw;
alter table visits_daily rename to visits;
commit;
