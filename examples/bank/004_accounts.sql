begin;
create table accounts (id bigserial primary key, branch_id bigint not null references branches (id), holder text not null, balance bigint not null default 0);
insert into accounts (branch_id, holder, balance) select 1 + i % 3, 'holder ' || i, 100 * i from generate_series(1, 60) as g(i);
commit;
