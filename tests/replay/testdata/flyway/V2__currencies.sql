create table currencies (code char(3) primary key, name text not null);
insert into currencies values ('EUR', 'Euro'), ('USD', 'Dollar');
alter table accounts add column currency char(3) not null default 'EUR';
alter table accounts add constraint accounts_currency foreign key (currency) references currencies (code) not valid;
alter table accounts validate constraint accounts_currency;
