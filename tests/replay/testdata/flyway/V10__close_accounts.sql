alter table accounts add column closed_at timestamptz, add column status text not null default 'open';
alter table accounts add constraint status_known check (status in ('open', 'closed'));
create index concurrently accounts_open on accounts (owner) where closed_at is null;
