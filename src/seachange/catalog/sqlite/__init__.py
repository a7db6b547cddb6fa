"""The catalog in a SQLite file: one machine, any number of processes."""

from seachange.catalog.sqlite.catalog import SqliteCatalog

__all__ = ["SqliteCatalog"]
