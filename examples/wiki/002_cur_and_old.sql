-- The newest text of a page and the older ones are in two tables.
create table cur (
  cur_id serial primary key,
  cur_namespace smallint not null default 0,
  cur_title text not null default '',
  cur_text text not null default '',
  cur_comment text not null default '',
  cur_user int not null default 0,
  cur_user_text text not null default '',
  cur_timestamp timestamp not null default '2002-01-01',
  cur_restrictions text not null default '',
  cur_counter bigint not null default 0
);
create table old (
  old_id serial primary key,
  old_namespace smallint not null default 0,
  old_title text not null default '',
  old_text text not null default '',
  old_comment text not null default '',
  old_user int not null default 0,
  old_user_text text not null default '',
  old_timestamp timestamp not null default '2002-01-01',
  old_minor_edit smallint not null default 0,
  old_flags text not null default ''
);
insert into cur (cur_title, cur_text, cur_comment, cur_user, cur_user_text)
  select 'Page ' || i, 'text ' || i, 'comment ' || i % 7, i % 40 + 1, 'Editor ' || i % 40 + 1 from generate_series(1, 120) g(i);
insert into old (old_title, old_text, old_comment, old_user, old_user_text, old_flags)
  select 'Page ' || i % 120 + 1, 'older ' || i, 'comment ' || i % 7, i % 40 + 1, 'Editor ' || i % 40 + 1, 'utf-8'
  from generate_series(1, 300) g(i);
