"""The change feed: what commits did to rows and schemas of tables, read from the log."""
