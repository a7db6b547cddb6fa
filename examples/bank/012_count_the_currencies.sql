begin;
update counters set value = value + 1 where name = 'accounts';
update currencies set used = (select count(*) from accounts a where a.currency = 'EUR') where code = 'EUR';
update currencies set used = used + 1;
commit;
