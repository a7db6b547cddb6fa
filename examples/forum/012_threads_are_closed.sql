alter table threads add column closed boolean not null default false;
