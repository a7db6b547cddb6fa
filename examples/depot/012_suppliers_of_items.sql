update items set supplier_id = 1 where supplier_id is null and id <= 50;
