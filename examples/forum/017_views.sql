alter table threads add column views bigint not null default 0;
