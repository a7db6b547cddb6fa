alter table items add constraint grams_are_positive check (grams > 0);
