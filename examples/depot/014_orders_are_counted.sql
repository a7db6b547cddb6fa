begin;
update suppliers set orders = 0 where orders is null;
update suppliers set orders = orders + 1;
commit;
