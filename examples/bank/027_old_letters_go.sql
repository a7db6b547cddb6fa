delete from letters where weight < 0;
