comment on table accounts is 'who has money';
alter table transfers add column note text;
