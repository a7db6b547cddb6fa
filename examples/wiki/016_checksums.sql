-- MediaWiki 1.19.
alter table revision add column rev_sha1 text not null default '';
