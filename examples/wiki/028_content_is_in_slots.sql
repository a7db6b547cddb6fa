-- MediaWiki 1.35.
alter table revision drop column rev_text_id, drop column rev_content_model, drop column rev_content_format;
