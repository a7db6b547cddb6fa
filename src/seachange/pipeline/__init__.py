"""The work that moves bytes: backfill, validation, migration, compaction and garbage collection."""
