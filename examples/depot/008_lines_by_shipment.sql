create index lines_by_shipment on lines (shipment_id);
create index lines_by_item on lines (item_id);
