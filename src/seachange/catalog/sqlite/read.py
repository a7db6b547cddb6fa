"""Reads that only this back end does in this way, inside one read transaction: of the log, and of inline batches."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import cache, partial
from typing import LiteralString

from seachange.catalog.reads import check, read_parts
from seachange.catalog.rows import BATCHES, EntryParts, Row, batch_from, entry_from, group, newest_at, unpack
from seachange.catalog.sqlite.schema import POSITION_BITS
from seachange.model.ids import Epoch, KeyHash, Seq
from seachange.model.log import LogEntry, RecordedViolation, RowViolation

HEAD = "SELECT max(seq) FROM log"
FLOOR = "SELECT floor FROM sequencer"
_LOG = """SELECT seq, timestamp_us, commit_id, writes, shares, bulk, touched, parts
    FROM log WHERE seq > ? AND seq <= ? ORDER BY seq"""
_LOG_BATCHES = """SELECT position >> 16, index_id, layout_id, rows, payload, checksum
    FROM batch WHERE position >= ? AND position < ? ORDER BY position"""
INDEX_BATCHES = """SELECT position >> 16, index_id, layout_id, rows, payload, checksum
    FROM batch WHERE index_id = %b AND position >= %b AND position < %b ORDER BY position"""
WRITTEN_INLINE = """SELECT coalesce(sum(rows), 0), coalesce(sum(length(payload)), 0) FROM seachange.batch
    WHERE index_id = %b AND position >= %b"""
_SHARES = "SELECT seq, shares FROM log WHERE seq > ? AND length(shares) > 0 ORDER BY seq"
_VIOLATIONS = "SELECT seq, key, text, session FROM violation WHERE seq > ? ORDER BY seq"
_BOUNDS = "SELECT min(seq), max(seq) FROM log"
# Above every sequence; shifted to a position it is still an integer of SQLite.
_EVERYTHING = (1 << 46) - 1
_TIMESTAMP = "SELECT timestamp_us FROM log WHERE seq = ?"


@cache
def _for_sqlite(text: str) -> str:
    return text.replace("seachange.", "").replace("%b", "?")


def query(db: sqlite3.Connection, text: LiteralString, *values: object) -> list[Row]:
    """A statement that both back ends have."""
    return db.execute(_for_sqlite(text), values).fetchall()


def read_entries(db: sqlite3.Connection, epoch: Epoch, after: Seq, upto: Seq | None = None) -> tuple[LogEntry, ...]:
    last = _EVERYTHING if upto is None else upto
    rows = db.execute(_LOG, (after, last)).fetchall()
    if not rows:
        return ()
    parts = EntryParts()
    if any(row[-1] & BATCHES for row in rows):
        places = ((after + 1) << POSITION_BITS, (last + 1) << POSITION_BITS)
        parts.batches = group((row[0], batch_from(row[1:])) for row in db.execute(_LOG_BATCHES, places))
    read_parts(partial(query, db), epoch, after, rows, parts)
    check(partial(query, db), epoch, after)
    if upto is not None:
        parts.allow_forgotten()
    return tuple(entry_from(row, unpack, parts) for row in rows)


def read_first_reliance(db: sqlite3.Connection, epoch: Epoch, keys: Iterable[KeyHash], after: Seq) -> Seq | None:
    wanted = frozenset(keys)
    found = next((seq for seq, blob in db.execute(_SHARES, (after,)) if not wanted.isdisjoint(unpack(blob))), None)
    check(partial(query, db), epoch, after)
    return None if found is None else Seq(found)


def read_first_violation(db: sqlite3.Connection, keys: Iterable[KeyHash], after: Seq) -> RecordedViolation | None:
    wanted = frozenset(keys)
    for seq, key, text, session in db.execute(_VIOLATIONS, (after,)):
        if key in wanted:
            return RecordedViolation(RowViolation(KeyHash(key), text, session), Seq(seq))
    return None


def read_sequence_at(db: sqlite3.Connection, timestamp_us: int) -> Seq:
    low, high = db.execute(_BOUNDS).fetchone()

    def timestamp_of(seq: int) -> int:
        return int(db.execute(_TIMESTAMP, (seq,)).fetchone()[0])

    return newest_at(timestamp_us, low, high, timestamp_of)
