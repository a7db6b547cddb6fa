create index rev_page_timestamp on revision (rev_page, rev_timestamp);
create index rev_user_timestamp on revision (rev_user, rev_timestamp);
create index page_random on page (page_namespace, page_title);
