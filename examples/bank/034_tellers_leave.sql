alter table tellers add column left_on date;
