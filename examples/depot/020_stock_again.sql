update items set stock = stock + 1 where reserved >= 0;
