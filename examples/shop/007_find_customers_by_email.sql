create index customers_email on customers (email);
create index concurrently customers_city on customers (city) include (name);
