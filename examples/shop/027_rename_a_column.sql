alter table customers rename column phone to phone_number;
alter table products rename column title to name;
