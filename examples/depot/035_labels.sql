alter table shelves rename column label to name;
