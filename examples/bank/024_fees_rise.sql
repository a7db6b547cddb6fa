begin;
update counters set value = value + 1 where name = 'letters';
update fees set amount = amount + 1 where name = 'card' and id <= 2;
update fees set taken = taken + amount;
commit;
