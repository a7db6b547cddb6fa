create table shipments (id bigserial primary key, site text not null references sites (code), lines integer not null default 0, sent_on date);
