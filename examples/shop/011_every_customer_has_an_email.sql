update customers set email = 'nobody' || id || '@example.com' where email is null;
alter table customers alter column email set not null;
