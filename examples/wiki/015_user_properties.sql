-- MediaWiki 1.16: an option is a row.
create table user_properties (
  up_user int not null references mwuser (user_id) on delete cascade,
  up_property text not null default '',
  up_value text,
  unique (up_user, up_property)
);
alter table mwuser drop column user_options, drop column user_rights;
