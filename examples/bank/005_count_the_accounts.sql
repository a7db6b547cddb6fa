begin;
update accounts set balance = balance + 1 where id = 1;
update branches set balance = balance + 1 where id <= 3;
update counters set value = (select count(*) from accounts) where name = 'accounts';
update counters set value = value + 1;
commit;
