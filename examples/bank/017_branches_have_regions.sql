alter table branches add column region text;
update branches set region = 'north';
