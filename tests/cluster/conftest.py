"""Databases on both catalogs and processes that share them."""

from tests.support.databases import all_workers, catalog_kind, place, place_for, workers

__all__ = ["all_workers", "catalog_kind", "place", "place_for", "workers"]
