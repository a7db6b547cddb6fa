alter table customers add column points int not null default 0;
alter table customers add column level text generated always as (case when points >= 100 then 'gold' else 'basic' end) stored;
create index customers_level on customers (level, points desc);
alter table customers alter column points type bigint;
