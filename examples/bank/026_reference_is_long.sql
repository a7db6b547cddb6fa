alter table transfers alter column reference type varchar(200);
