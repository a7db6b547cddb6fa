alter table messages add column subject text default '(none)';
