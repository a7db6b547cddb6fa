begin;
update forums set threads = 10;
update forums set posts = 30;
commit;
