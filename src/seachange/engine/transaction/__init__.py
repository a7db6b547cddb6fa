"""Transactions: snapshot, reads, writes, rebase and commit."""
