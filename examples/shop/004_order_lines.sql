begin;
create table order_lines (
  order_id bigint not null,
  line_no int not null,
  product_id int not null,
  quantity int not null,
  primary key (order_id, line_no)
);
insert into order_lines
  select 1 + i % 500, i / 500, 1 + i % 200, 1 + i % 5 from generate_series(0, 1499) g(i);
commit;
