alter table members alter column posts type bigint;
