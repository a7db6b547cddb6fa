-- MediaWiki 1.25 no longer counts visits.
alter table page drop column page_counter;
