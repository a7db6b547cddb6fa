-- Nobody asks for a payment by its number: the key goes, and then the column that it was made of.
alter table payments drop constraint payments_pkey;
alter table payments drop column id;
