alter table shelves alter column load type bigint;
