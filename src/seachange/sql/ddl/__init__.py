"""DDL text to statement values."""
