"""DDL text to statement values, one statement family one module."""
