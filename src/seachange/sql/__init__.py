"""Text in, DuckDB out: parsing, binding, queries, DML, fast paths."""
