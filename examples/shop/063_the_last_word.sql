comment on table orders is 'what customers have bought';
drop view open_orders;
create view open_orders as select id, public_id, status, total from orders where status in ('new', 'paid');
drop table archive.visits_raw;
drop schema archive;
