begin;
update forums set threads = 10 where id = 1;
update forums set posts = 30 where id = 1;
commit;
