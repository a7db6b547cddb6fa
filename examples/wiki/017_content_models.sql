-- MediaWiki 1.21.
alter table revision add column rev_content_model text, add column rev_content_format text;
alter table page add column page_content_model text;
