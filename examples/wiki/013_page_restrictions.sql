create table page_restrictions (
  pr_id serial primary key,
  pr_page int not null references page (page_id) on delete cascade,
  pr_type text not null default 'edit',
  pr_level text not null default 'sysop'
);
create index pr_page on page_restrictions (pr_page);
