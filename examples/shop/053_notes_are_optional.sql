alter table order_lines add column remark text not null default '-';
alter table order_lines alter column remark drop not null;
alter table order_lines alter column remark drop default;
