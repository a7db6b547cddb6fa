update items set stock = stock + 1;
