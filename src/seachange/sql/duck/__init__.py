"""A session's DuckDB cursor, and values and rows on their way in and out."""
