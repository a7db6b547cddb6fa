alter table accounts add constraint overdraft_is_positive check (overdraft >= 0);
