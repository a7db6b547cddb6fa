"""DDL parsing: text to statement values."""
