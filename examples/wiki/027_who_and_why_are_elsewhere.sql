-- MediaWiki 1.34; the old columns say what they were to programs that still know them.
alter table revision drop column rev_user down using (0), drop column rev_user_text down using (''),
  drop column rev_comment down using ('');
create index rev_actor_timestamp on revision (rev_actor, rev_timestamp);
