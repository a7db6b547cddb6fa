alter table products alter column stock type integer;
