-- MediaWiki 1.31: users and addresses are actors.
create table actor (
  actor_id bigserial primary key,
  actor_user int references mwuser (user_id) on delete set null,
  actor_name text not null default ''
);
create index actor_name on actor (actor_name);
alter table revision add column rev_actor bigint not null default 0;
