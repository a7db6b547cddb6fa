begin;
create table shelves (id serial primary key, site text not null references sites (code), label text, load integer not null default 0);
insert into shelves (site, label) values ('ams', 'A1'), ('ams', 'A2'), ('lyo', 'L1'), ('osl', 'O1');
commit;
