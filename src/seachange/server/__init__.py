"""The PostgreSQL wire protocol server."""
