begin;
update counters set value = (select count(*) from accounts) where name = 'accounts';
update counters set value = value + 1 where name = 'letters';
commit;
