create schema archive;
alter table visits_raw set schema archive;
