"""PostgreSQL semantics on DuckDB: functions, casts, operators, arithmetic, error codes."""
