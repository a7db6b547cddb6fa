begin;
update carriers set parcels = parcels + 1 where code = 'bike';
update carriers set late = late + 1 where code = 'ship';
commit;
