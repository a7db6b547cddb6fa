-- Other systems know a customer by a code: it becomes the key, and the number stays unique for those who refer to it.
alter table customers add column code uuid not null default gen_random_uuid();
alter table customers alter primary key using columns (code);
