create table accounts (
    id          bigint generated always as identity primary key,
    owner       varchar(100) not null,
    balance     numeric(19, 4) not null default 0,
    opened_at   timestamp with time zone not null default now()
);
insert into accounts (owner, balance) values ('Ada', 100), ('Bob', 50);
