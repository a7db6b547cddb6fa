"""The catalog in a PostgreSQL database: any number of machines."""

from seachange.catalog.postgres.catalog import PostgresCatalog

__all__ = ["PostgresCatalog"]
