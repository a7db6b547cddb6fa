begin;
update tags set used = used + 1 where id = 1;
update tags set used = used + 1 where id = 2;
commit;
