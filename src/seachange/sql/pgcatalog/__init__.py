"""pg_catalog and information_schema: relations and functions that tell of the schema, made from the descriptors."""
