alter table addresses add constraint addresses_country_code check (length(country) = 2);
