begin;
update badges set given = given + 1 where code = 'first';
update badges set given = given + 1 where code = 'kind';
update badges set given = given + 1 where code = 'old';
commit;
