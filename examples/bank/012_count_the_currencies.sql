begin;
update currencies set used = (select count(*) from accounts a where a.currency = 'EUR') where code = 'EUR';
update currencies set used = used + 1 where code in ('CHF', 'NOK');
commit;
