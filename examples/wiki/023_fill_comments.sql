insert into comment (comment_text) select distinct rev_comment from revision;
update revision set rev_comment_id = coalesce(
  (select min(c.comment_id) from comment c where c.comment_text = rev_comment), 0);
