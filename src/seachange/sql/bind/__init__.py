"""The binder: names and types of a query, resolved as PostgreSQL resolves them, before anything is translated."""
