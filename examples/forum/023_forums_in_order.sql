begin;
update forums set position = id;
update forums set position = position + 1 where id > 1;
commit;
