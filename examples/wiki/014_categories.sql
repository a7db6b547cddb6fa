create table category (
  cat_id serial primary key,
  cat_title text not null unique,
  cat_pages int not null default 0,
  cat_subcats int not null default 0,
  cat_hidden smallint not null default 0
);
insert into category (cat_title) select 'Category ' || i from generate_series(1, 20) g(i);
