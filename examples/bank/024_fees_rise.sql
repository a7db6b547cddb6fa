begin;
update fees set amount = amount + 1;
update fees set taken = 0 where taken is null;
commit;
