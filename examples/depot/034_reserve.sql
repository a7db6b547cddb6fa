update items set reserved = reserved + 1;
