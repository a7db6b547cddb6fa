-- The view goes on to show what it showed, whatever the column is called.
alter table customers rename column name to full_name;
