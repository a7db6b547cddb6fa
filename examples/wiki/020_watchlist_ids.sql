alter table watchlist add column wl_notificationtimestamp timestamp;
create index wl_title on watchlist (wl_namespace, wl_title);
