"""What a transaction reads, and the tables that it uses for it."""
