alter table posts rename column likes to liked;
