alter table shipments add column carrier text references carriers (code) default 'rail';
