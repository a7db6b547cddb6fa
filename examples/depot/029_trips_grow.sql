begin;
update trips set km = km + 10 where id = 1;
update trips set stops = stops + 1 where id = 2;
commit;
