alter table accounts add column currency text default 'EUR';
alter table accounts add constraint accounts_currency foreign key (currency) references currencies (code) not valid;
alter table accounts validate constraint accounts_currency;
