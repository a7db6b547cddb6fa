"""A consistent copy of a SQLite catalog, made while others write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from seachange.catalog.port import FORMAT
from seachange.catalog.sqlite.connections import client_error
from seachange.catalog.sqlite.read import HEAD
from seachange.catalog.sqlite.schema import format_of, migrate_once
from seachange.model.ids import Seq
from seachange.runtime.filesystem import TEMPORARY_PREFIX, named_errors, sync
from seachange.runtime.permissions import copy_file, create_file
from seachange.runtime.renaming import rename_new

FILE_NAME = "catalog.sqlite"
_SET_IDENTITY = "UPDATE sequencer SET database_id = ?"
# In the copy no node is alive, so all locks are free.
_REST = (
    "UPDATE node SET live = 0",
    "DELETE FROM lock",
    "DELETE FROM lock_wait",
    "DELETE FROM claim",
    # The files of exports are not copied.
    "DELETE FROM export",
    "DELETE FROM secret",
)


def restore_copy(source: Path, path: Path, identity: str) -> None:
    """Restores a copy, of this format or an older one, as the catalog of another database. It gets its name when it is
    complete and has its own id: with the id of the source database, it could be opened with that one's folder."""
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{path.name}")
    with named_errors("write", str(path)):
        copy_file(source / FILE_NAME, temporary)
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as copy:
            copy.execute("BEGIN IMMEDIATE")
            while (found := format_of(copy)) < FORMAT:
                migrate_once(copy, found)
            copy.execute(_SET_IDENTITY, (identity,))
            copy.execute("COMMIT")
    except sqlite3.Error as problem:
        raise client_error(problem, path) from problem
    with named_errors("write", str(path)):
        sync(temporary)
        rename_new(str(temporary), str(path))
        sync(path.parent)


def copy_catalog(source: sqlite3.Connection, folder: Path) -> Seq:
    """Returns the last sequence in the copy."""
    path = folder / FILE_NAME
    try:
        create_file(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as copy:
            source.backup(copy)
            # A single file, without a write-ahead log.
            copy.execute("PRAGMA journal_mode = DELETE")
            for statement in _REST:
                copy.execute(statement)
            return Seq(copy.execute(HEAD).fetchone()[0])
    except (sqlite3.Error, OSError) as problem:
        raise client_error(problem, path) from problem
