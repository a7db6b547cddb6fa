"""Reads that only this back end does in this way: of the log, and of inline batches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import LiteralString

from seachange.catalog.postgres.arrays import Bigints
from seachange.catalog.postgres.connections import Connection
from seachange.catalog.reads import check, read_parts
from seachange.catalog.rows import EntryParts, Row, batch_from, check_snapshot, entry_from, group
from seachange.model.ids import Epoch, KeyHash, Seq
from seachange.model.log import LogEntry, RecordedViolation, RowViolation

# Up to the head, or up to a sequence. Without the upper bounds a planner without statistics reads the whole log.
_LOG = """SELECT l.seq, l.timestamp_us, l.commit_id, l.writes, l.shares, l.bulk, l.touched,
        l.parts, b.index_id, b.layout_id, b.rows, b.payload, b.checksum, c.floor, c.live
    FROM seachange.log l
    LEFT JOIN seachange.batch b ON b.seq = l.seq AND b.seq > %b AND b.seq <= seachange.head()
    CROSS JOIN (SELECT s.floor, n.live FROM seachange.sequencer s
        LEFT JOIN seachange.node n ON n.epoch = %b) c
    WHERE l.seq > %b AND l.seq <= seachange.head() ORDER BY l.seq, b.ordinal"""
_LOG_UPTO = _LOG.replace("seachange.head()", "%b")
_FIRST_RELIANCE = """SELECT min(seq) FROM seachange.log
    WHERE seq > %b AND seq <= seachange.head() AND shares && %b::bigint[]"""
_FIRST_VIOLATION = """SELECT seq, key, text, session FROM seachange.violation
    WHERE seq > %b AND key = ANY (%b::bigint[]) ORDER BY seq LIMIT 1"""
_LOG_COLUMNS = 8
_BATCH_COLUMNS = slice(8, 13)
_CHECK_COLUMNS = slice(13, 15)
INDEX_BATCHES = """SELECT seq, index_id, layout_id, rows, payload, checksum FROM seachange.batch
    WHERE index_id = %b AND seq > %b AND seq <= %b ORDER BY seq, ordinal"""


def query(db: Connection, text: LiteralString, *values: object) -> list[Row]:
    return db.execute(text, values, binary=True).fetchall()


def read_entries(db: Connection, epoch: Epoch, after: Seq, upto: Seq | None = None) -> tuple[LogEntry, ...]:
    if upto is None:
        rows = db.execute(_LOG, (after, epoch, after), prepare=True, binary=True).fetchall()
    else:
        rows = db.execute(_LOG_UPTO, (after, upto, epoch, after, upto), binary=True).fetchall()
    if not rows:
        # If nothing is read, nothing can be missing.
        return ()
    check_snapshot(epoch, after, rows[0][_CHECK_COLUMNS])
    parts = EntryParts()
    with_batches = [row for row in rows if row[_LOG_COLUMNS] is not None]
    parts.batches = group((row[0], batch_from(row[_BATCH_COLUMNS])) for row in with_batches)
    # An entry has one row per batch, at least one.
    entries = {row[0]: row[:_LOG_COLUMNS] for row in rows}
    read_parts(partial(query, db), epoch, after, tuple(entries.values()), parts)
    if upto is not None:
        parts.allow_forgotten()
    return tuple(entry_from(row, tuple, parts) for row in entries.values())


def read_first_reliance(db: Connection, epoch: Epoch, keys: Sequence[KeyHash], after: Seq) -> Seq | None:
    ((found,),) = query(db, _FIRST_RELIANCE, after, Bigints(keys))
    check(partial(query, db), epoch, after)
    return None if found is None else Seq(found)


def read_first_violation(db: Connection, keys: Sequence[KeyHash], after: Seq) -> RecordedViolation | None:
    for seq, key, shown, session in query(db, _FIRST_VIOLATION, after, Bigints(keys)):
        return RecordedViolation(RowViolation(KeyHash(key), shown, session), Seq(seq))
    return None
