"""Feeds in SQLite, inside one write transaction."""

from __future__ import annotations

import sqlite3

from seachange import errors
from seachange.model.feeds import FeedRecord
from seachange.model.ids import Seq

_FLOOR = "SELECT floor FROM sequencer"
_CREATE = "INSERT OR IGNORE INTO feed (database, name, owner, tables, position, created_us) VALUES (?, ?, ?, ?, ?, ?)"
_ADVANCE = "UPDATE feed SET position = ?1 WHERE database = ?2 AND name = ?3 AND position < ?1"
_END = "UPDATE feed SET ended = ? WHERE database = ? AND name = ? AND ended = ''"
_DROP = "DELETE FROM feed WHERE database = ? AND name = ?"


def create_feed(db: sqlite3.Connection, record: FeedRecord) -> bool:
    (floor,) = db.execute(_FLOOR).fetchone()
    if record.position < floor:
        raise errors.FeedTooOld(since=record.position, floor=floor)
    tables = " ".join(map(str, record.tables))
    values = (record.database, record.name, record.owner, tables, record.position, record.created_us)
    return db.execute(_CREATE, values).rowcount > 0


def advance_feed(db: sqlite3.Connection, database: str, name: str, position: Seq) -> None:
    db.execute(_ADVANCE, (position, database, name))


def end_feed(db: sqlite3.Connection, database: str, name: str, reason: str) -> None:
    db.execute(_END, (reason, database, name))


def drop_feed(db: sqlite3.Connection, database: str, name: str) -> None:
    db.execute(_DROP, (database, name))
