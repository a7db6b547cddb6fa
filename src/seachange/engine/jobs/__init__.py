"""Jobs of schema changes: running them, their commits and their pipelines."""
