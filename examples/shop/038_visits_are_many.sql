alter table visits alter column seconds type bigint;
alter table visits add column agent text, add column referrer text default 'none', drop column customer_id;
