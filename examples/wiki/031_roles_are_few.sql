alter table slots add foreign key (slot_role_id) references slot_roles (role_id) not valid;
alter table page_restrictions add constraint pr_level check (pr_level <> '');
