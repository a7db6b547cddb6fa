-- The index is built first, and then made the constraint.
create unique index concurrently customers_email_key on customers (email);
alter table customers add constraint customers_email_unique unique using index customers_email_key;
drop index concurrently customers_email;
