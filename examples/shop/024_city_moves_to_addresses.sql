drop index customers_city;
alter table customers drop column city;
