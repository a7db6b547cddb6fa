"""SELECT: resolving relations and running on DuckDB, or by key without it."""
