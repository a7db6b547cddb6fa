alter table payments alter column amount type numeric(14, 2);
alter table orders alter column note set default '', alter column note type varchar(500);
