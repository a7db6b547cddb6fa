begin;
update suppliers set orders = orders + 1 where id = 1;
update suppliers set orders = orders + 1 where id = 2;
commit;
