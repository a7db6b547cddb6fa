create schema audit;
create table audit.changes (id bigserial primary key, what text not null, at timestamptz not null default now());
create table audit.logins (id bigserial primary key, who text not null);
create view audit.recent as select what, at from audit.changes;
