begin;
create table visits (id bigserial primary key, customer_id bigint, page text not null, seconds int);
insert into visits (customer_id, page, seconds) select 1 + i % 300, '/p/' || i % 200, i % 60 from generate_series(1, 1000) g(i);
commit;
