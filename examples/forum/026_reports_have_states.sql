create type report_state as enum ('new', 'read', 'closed');
alter table reports add column state report_state not null default 'new';
