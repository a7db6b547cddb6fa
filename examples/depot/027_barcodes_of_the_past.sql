update items set barcode = 'b' || id where barcode is null and id <= 50;
