"""Databases on both catalogs."""

from tests.support.databases import catalog_kind, place, place_for

__all__ = ["catalog_kind", "place", "place_for"]
