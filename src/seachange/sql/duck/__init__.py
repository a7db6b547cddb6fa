"""A session's DuckDB cursor, and the conversion of values and rows."""
