"""An application whose tables have rows and writers while they are migrated."""
