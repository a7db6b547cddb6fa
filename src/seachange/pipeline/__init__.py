"""Compaction and garbage collection, later backfill, validation and migration: the work that moves bytes."""
