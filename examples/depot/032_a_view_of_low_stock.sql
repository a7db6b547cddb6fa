create view low_stock as select id, name, stock from items where stock < 10;
