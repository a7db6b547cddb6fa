-- MediaWiki 1.1: users with their options in one text.
create table mwuser (
  user_id serial primary key,
  user_name text not null unique,
  user_real_name text not null default '',
  user_password text not null default '',
  user_email text not null default '',
  user_options text not null default '',
  user_rights text not null default '',
  user_touched timestamp
);
insert into mwuser (user_name, user_options) select 'Editor ' || i, 'skin=' || i % 3 from generate_series(1, 40) g(i);
