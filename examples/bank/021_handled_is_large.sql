alter table tellers alter column handled type bigint;
