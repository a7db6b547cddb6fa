alter table items add column supplier_id integer references suppliers (id);
