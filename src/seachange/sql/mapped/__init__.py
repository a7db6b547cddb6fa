"""What functions and operators of PostgreSQL are in DuckDB, by topic."""
