"""INSERT, UPDATE, DELETE, MERGE, row locks, and calls with side effects."""
