"""A copy of a SQLite catalog as of one moment, made while others write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from seachange.catalog.sqlite.connections import client_error
from seachange.catalog.sqlite.read import HEAD
from seachange.model.ids import Seq

FILE_NAME = "catalog.sqlite"
# In the copy nobody is at work: what was held is free.
_REST = (
    "UPDATE node SET live = 0",
    "DELETE FROM lock",
    "DELETE FROM lock_wait",
    "DELETE FROM claim",
)


def copy_catalog(source: sqlite3.Connection, folder: Path) -> Seq:
    """Gives the last sequence that the copy has."""
    path = folder / FILE_NAME
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as copy:
            source.backup(copy)
            # One file, without a log beside it.
            copy.execute("PRAGMA journal_mode = DELETE")
            for statement in _REST:
                copy.execute(statement)
            return Seq(copy.execute(HEAD).fetchone()[0])
    except sqlite3.Error as problem:
        raise client_error(problem, path) from problem
