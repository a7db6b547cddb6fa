create index transfers_by_source on transfers (source);
create index transfers_by_target on transfers (target);
