drop table cur;
alter table pagecontent drop column old_namespace, drop column old_title, drop column old_comment, drop column old_user,
  drop column old_user_text, drop column old_timestamp, drop column old_minor_edit, drop column inverse_timestamp,
  drop column page_id;
