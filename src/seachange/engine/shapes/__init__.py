"""Sessions and transactions that see tables in an earlier shape, and read and write the tables of now."""
