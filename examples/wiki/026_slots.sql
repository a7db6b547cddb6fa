-- MediaWiki 1.31: a revision has several contents.
create table slot_roles (role_id serial primary key, role_name text not null unique);
create table content (
  content_id bigserial primary key,
  content_size int not null default 0,
  content_sha1 text not null default '',
  content_address text not null default ''
);
create table slots (
  slot_revision_id bigint not null,
  slot_role_id smallint not null default 1,
  slot_content_id bigint not null default 0,
  slot_origin bigint not null default 0,
  primary key (slot_revision_id, slot_role_id)
);
insert into slot_roles (role_name) values ('main');
