"""Function mappings by topic: PostgreSQL functions expressed with DuckDB's and our own."""
