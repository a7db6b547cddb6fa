alter table threads add column pinned boolean;
update threads set pinned = false;
alter table threads alter column pinned set default false;
