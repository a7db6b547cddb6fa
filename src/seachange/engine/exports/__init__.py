"""Tables as Iceberg: exports on demand and by schedule."""
