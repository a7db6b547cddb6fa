update threads set replies = replies + 1;
