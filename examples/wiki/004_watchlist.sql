create table watchlist (
  wl_user int not null references mwuser (user_id) on delete cascade,
  wl_namespace smallint not null default 0,
  wl_title text not null default '',
  unique (wl_user, wl_namespace, wl_title)
);
