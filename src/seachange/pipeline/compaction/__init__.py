"""Compaction, and garbage collection of files."""
