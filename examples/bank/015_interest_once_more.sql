begin;
select count(*) from accounts where not closed;
update accounts set balance = balance + 1 where not closed;
select sum(balance) from accounts;
commit;
