alter table customers add column phone varchar(30);
alter table customers add column newsletter boolean not null default false;
