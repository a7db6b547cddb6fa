"""pg_catalog and information_schema: relations and functions about the schema, computed from the descriptors."""
