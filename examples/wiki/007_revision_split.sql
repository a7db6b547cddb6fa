-- MediaWiki 1.5: page, revision and text take the place of cur and old.
create table page (
  page_id serial primary key,
  page_namespace smallint not null default 0,
  page_title text not null default '',
  page_restrictions text not null default '',
  page_counter bigint not null default 0,
  page_is_redirect smallint not null default 0,
  page_latest int not null default 0
);
alter table old rename to pagecontent;
alter table pagecontent add column page_id int;
create table revision (
  rev_id serial primary key,
  rev_page int references page (page_id) on delete cascade,
  rev_text_id int,
  rev_comment text not null default '',
  rev_user int not null default 0,
  rev_user_text text not null default '',
  rev_timestamp timestamp not null default '2002-01-01',
  rev_minor_edit smallint not null default 0,
  rev_deleted smallint not null default 0
);
