"""Clients of PostgreSQL against `seachange serve`: which features work."""
