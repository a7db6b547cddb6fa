create index cur_name_title on cur (cur_namespace, cur_title);
create index old_title_time on old (old_namespace, old_title, old_timestamp);
