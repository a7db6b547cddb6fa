-- What depends on it goes with the column: index, constraint and all.
alter table products drop column vendor_id cascade;
drop table vendors;
