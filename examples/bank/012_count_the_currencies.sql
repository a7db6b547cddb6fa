begin;
update currencies set used = (select count(*) from accounts a where a.currency = code);
update currencies set used = used + 1 where code = 'EUR';
commit;
