create index tellers_by_name on tellers (name);
