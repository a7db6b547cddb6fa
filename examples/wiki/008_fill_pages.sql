insert into page (page_title, page_restrictions, page_counter)
  select cur_title, min(cur_restrictions), max(cur_counter) from cur group by cur_title;
update pagecontent set page_id = (select min(p.page_id) from page p where p.page_title = old_title);
insert into revision (rev_page, rev_text_id, rev_comment, rev_user, rev_user_text)
  select page_id, old_id, old_comment, old_user, old_user_text from pagecontent where page_id is not null;
