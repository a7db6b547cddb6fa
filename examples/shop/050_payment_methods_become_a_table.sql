create table methods (name text primary key);
insert into methods values ('card'), ('invoice'), ('cash');
alter table payments add constraint payments_method_fkey foreign key (method) references methods (name);
alter table payments drop constraint payments_method_check;
