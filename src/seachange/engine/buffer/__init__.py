"""The write set, read set and locks of a transaction."""
