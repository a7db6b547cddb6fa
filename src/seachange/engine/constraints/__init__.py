"""Unique keys and foreign keys as a transaction sees them."""
