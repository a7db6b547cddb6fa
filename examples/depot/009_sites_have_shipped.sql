begin;
update sites set shipped = shipped + 1 where code = 'ams';
update sites set received = received + 1 where code = 'osl';
commit;
