alter table accounts add column closed boolean not null default false;
