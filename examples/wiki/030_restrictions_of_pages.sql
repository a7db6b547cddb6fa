-- MediaWiki 1.39: they have a table of their own.
alter table page drop column page_restrictions;
alter table page add column page_lang text;
