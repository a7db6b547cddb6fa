"""What a transaction has written, read and locked."""
