alter table transfers add column reference text default 'none';
