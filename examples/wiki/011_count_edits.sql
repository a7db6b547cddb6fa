alter table mwuser add column user_editcount int;
update mwuser set user_editcount = 0;
