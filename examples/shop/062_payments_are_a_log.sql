-- Payments are never looked up by number: drop the key, and then its column.
alter table payments drop constraint payments_pkey;
alter table payments drop column id;
