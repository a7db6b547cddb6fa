alter table reviews add check (stars between 1 and 5);
