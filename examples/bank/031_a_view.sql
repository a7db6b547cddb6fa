create view open_accounts as select id, holder, balance from accounts where not closed;
