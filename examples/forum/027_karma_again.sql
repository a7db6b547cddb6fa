update members set karma = karma + 1 where karma >= 0;
