alter table pagecontent alter column old_id type bigint;
alter table revision alter column rev_text_id type bigint;
