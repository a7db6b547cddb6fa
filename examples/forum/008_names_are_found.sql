create index members_by_name on members (name);
