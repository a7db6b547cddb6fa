begin;
update forums set position = 1 where id = 1;
update forums set position = 2 where id = 2;
commit;
