begin;
update trips set km = km + 10;
update trips set stops = stops + 1 where km > 10;
commit;
