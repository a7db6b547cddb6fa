"""Query templates: a query compiled without looking at any table, and what its text says about tables, keys and
types."""
