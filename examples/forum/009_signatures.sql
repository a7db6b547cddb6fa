alter table members add column signature text default '';
