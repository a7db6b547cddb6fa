alter table mwuser add column user_registration timestamp;
alter table mwuser add column user_email_token text, add column user_email_authenticated timestamp;
create index user_email_token on mwuser (user_email_token);
