update messages set size = 1;
