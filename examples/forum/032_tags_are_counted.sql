begin;
update tags set used = used + 1;
update tags set used = used + 1 where name = 'sql';
commit;
