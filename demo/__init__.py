"""The demonstration: the schema of a table with a million rows changes eight times while two processes use it."""
