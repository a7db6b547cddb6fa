update threads set replies = 3;
