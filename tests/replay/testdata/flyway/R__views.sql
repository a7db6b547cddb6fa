create or replace view open_accounts as
    select id, owner, balance from accounts where closed_at is null;
