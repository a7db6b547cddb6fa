alter table posts add constraint edits_are_not_negative check (edits >= 0) not valid;
alter table posts validate constraint edits_are_not_negative;
