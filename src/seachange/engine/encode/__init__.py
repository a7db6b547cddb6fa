"""Rows to index entries: write plans, computed columns, defaults, CHECK constraints."""
