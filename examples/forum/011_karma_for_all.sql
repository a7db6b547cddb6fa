update members set karma = karma + 1;
