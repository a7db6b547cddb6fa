alter table branches alter column balance type numeric(20, 2);
