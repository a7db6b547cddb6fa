begin;
create table warehouses (id int primary key, manager_of int);
insert into warehouses values (1, 2), (2, 1);
commit;
alter table warehouses add constraint warehouses_manager_fkey
  foreign key (manager_of) references warehouses (id) deferrable initially deferred;
