begin;
update fees set amount = amount + 1 where name = 'card' and id <= 2;
update fees set amount = amount + 2 where name = 'abroad' and id <= 2;
commit;
