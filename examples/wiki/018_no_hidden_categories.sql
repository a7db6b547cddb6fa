alter table category drop column cat_hidden;
