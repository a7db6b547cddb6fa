"""Tables as Iceberg tables: metadata beside the segments, which stay as they are."""
