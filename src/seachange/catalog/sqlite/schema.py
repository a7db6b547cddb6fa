"""The tables of a SQLite catalog, as numbered migrations.

The log has a row of sequence 0, before every commit, so that it is never empty and the head is its last row.
"""

from __future__ import annotations

import sqlite3
from functools import cache
from importlib.resources import files
from pathlib import Path

from seachange import errors
from seachange.catalog.port import FORMAT
from seachange.catalog.sqlite.connections import SqliteWriter
from seachange.runtime.faults import reach

# Inline batches are keyed by sequence and number in one integer, the cheapest key in SQLite.
POSITION_BITS = 16

# Migration n upgrades a catalog from format n - 1 to format n.
MIGRATIONS = tuple(f"tables_{number}.sql" for number in range(1, FORMAT + 1))

_HAS_TABLES = "SELECT count(*) FROM sqlite_master WHERE name = 'sequencer'"
_HAS_OTHERS = "SELECT count(*) FROM sqlite_master"
_FORMAT = "SELECT format FROM sequencer"
_SET_FORMAT = "UPDATE sequencer SET format = ?"
# A program that knows only the older format must not continue to write it.
_END_OLDER_NODES = "UPDATE node SET live = 0 WHERE format < ?"

BIND = "UPDATE sequencer SET database_id = ? WHERE database_id IS NULL"


def format_of(db: sqlite3.Connection) -> int:
    """The catalog's format, 0 before the first migration."""
    if db.execute(_HAS_TABLES).fetchone()[0] == 0:
        return 0
    return int(db.execute(_FORMAT).fetchone()[0])


def has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def check_format(found: int, path: Path) -> None:
    if found > FORMAT:
        raise errors.CatalogFormatTooNew(catalog=str(path), found=found, known=FORMAT)


def migrate(writer: SqliteWriter, path: Path, creates: bool = True) -> None:
    """Upgrades the catalog to this program's format, one transaction per migration."""
    while True:
        with writer as db:
            found = format_of(db)
            check_format(found, path)
            if found == FORMAT:
                return
            if found == 0:
                _check_new(db, path, creates)
            reach("migration.started")
            migrate_once(db, found)
            reach("migration.applied")
        reach("migration.committed")


def migrate_once(db: sqlite3.Connection, found: int) -> None:
    run_script(db, MIGRATIONS[found])
    db.execute(_SET_FORMAT, (found + 1,))
    db.execute(_END_OLDER_NODES, (found + 1,))


def run_script(db: sqlite3.Connection, name: str) -> None:
    """Inside the current transaction, which `executescript` would commit."""
    for statement in _statements(name):
        db.execute(statement)


@cache
def _statements(name: str) -> tuple[str, ...]:
    """Reading them takes a third of the time that a new catalog takes."""
    return tuple(files(__package__).joinpath(name).read_text().split(";\n"))


def _check_new(db: sqlite3.Connection, path: Path, creates: bool) -> None:
    if db.execute(_HAS_OTHERS).fetchone()[0]:
        raise errors.InvalidCatalog(catalog=str(path), detail="it contains tables of another program")
    if not creates:
        raise errors.CatalogMissing(catalog=str(path))
