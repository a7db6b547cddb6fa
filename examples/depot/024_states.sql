create type shipment_state as enum ('open', 'sent', 'lost');
alter table shipments add column state shipment_state not null default 'open';
