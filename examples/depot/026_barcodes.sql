alter table items add column barcode text;
create index items_by_barcode on items (barcode);
