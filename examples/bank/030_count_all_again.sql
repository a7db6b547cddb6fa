begin;
update counters set value = value + 1 where name = 'accounts';
update counters set value = value + 1 where name = 'letters';
update counters set value = value + 1 where name = 'transfers';
commit;
