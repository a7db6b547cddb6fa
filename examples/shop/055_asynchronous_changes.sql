alter table concurrently payments add column reference text;
alter table concurrently payments add constraint payments_reference_key unique (reference);
