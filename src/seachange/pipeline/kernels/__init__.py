"""The kernels of backfill, migration and validation, as tasks for an executor."""
