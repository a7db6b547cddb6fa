-- MediaWiki 1.30: a comment is a row.
create table comment (
  comment_id bigserial primary key,
  comment_hash int not null default 0,
  comment_text text not null default '',
  comment_data text
);
create index comment_hash on comment (comment_hash);
alter table revision add column rev_comment_id bigint not null default 0;
