drop table visits;
