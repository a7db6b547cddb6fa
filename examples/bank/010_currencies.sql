begin;
create table currencies (code text primary key, name text, used integer not null default 0);
insert into currencies (code, name) values ('EUR', 'Euro'), ('NOK', 'Krone'), ('CHF', 'Franc');
commit;
