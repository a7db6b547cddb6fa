-- The same name, another column: nothing of the old values comes back.
alter table order_lines drop column remark;
alter table order_lines add column remark int default 0;
