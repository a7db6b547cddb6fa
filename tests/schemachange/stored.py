"""Which indexes a catalog keeps data of, read past every interface."""

import sqlite3
from contextlib import closing

import psycopg

from tests.support.nodes import Place

_TABLES = ("generation", "segment")


def stored_indexes(place: Place) -> set[int]:
    if place.catalog is None:
        with closing(sqlite3.connect(place.data / "catalog.sqlite")) as connection:
            return {
                id_
                for table in (*_TABLES, "batch")
                for (id_,) in connection.execute(f"SELECT DISTINCT index_id FROM {table}")
            }
    # Batches go with their partitions there, long after.
    with psycopg.connect(place.catalog) as server:
        return {
            id_
            for table in _TABLES
            for (id_,) in server.execute(f"SELECT DISTINCT index_id FROM seachange.{table}").fetchall()
        }
