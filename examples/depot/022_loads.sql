update shelves set load = load + 1;
