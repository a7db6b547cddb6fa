-- MediaWiki 1.10.
alter table revision add column rev_len int, add column rev_parent_id int;
alter table page add column page_len int not null default 0;
