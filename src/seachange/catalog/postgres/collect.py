"""Garbage collection in the catalog, after the floor has risen.

Inline batches are dropped as whole partitions, detached concurrently so that nothing waits. Every step can be repeated,
and completes what a killed collector left.
"""

from __future__ import annotations

from psycopg import sql

from seachange.catalog.postgres.connections import Connection
from seachange.catalog.postgres.read import query
from seachange.catalog.rows import SLICE_ROWS
from seachange.model.ids import SegmentId

# Only one collector drops partitions at a time.
_TRY_LOCK = "SELECT pg_try_advisory_lock(5873429021877)"
_UNLOCK = "SELECT pg_advisory_unlock(5873429021877)"
_SLICE_OF_LOG = """DELETE FROM seachange.log WHERE seq < %s
    AND seq < (SELECT min(seq) FROM seachange.log) + %s"""
_BELOW = """SELECT p.first, p.beyond FROM seachange.batch_partition p, seachange.sequencer s
    WHERE p.beyond <= s.floor + 1 AND p.beyond <= seachange.head() ORDER BY p.first"""
_IS_UNREAD = "SELECT seachange.is_unread(%b, %b)"
# True: attached; False: a detachment was interrupted; no row: detached.
_ATTACHED = """SELECT NOT inhdetachpending FROM pg_inherits
    WHERE inhparent = 'seachange.batch'::regclass AND inhrelid = to_regclass(%s)"""
_DETACH = sql.SQL("ALTER TABLE seachange.batch DETACH PARTITION {} CONCURRENTLY")
_FINALIZE = sql.SQL("ALTER TABLE seachange.batch DETACH PARTITION {} FINALIZE")
_DROP = sql.SQL("DROP TABLE IF EXISTS {}")
_FORGET_PARTITION = "DELETE FROM seachange.batch_partition WHERE first = %b"
# An index that was dropped before the oldest partition has no batch left.
_FORGET_OWNERS = """DELETE FROM seachange.index_owner o
    WHERE o.dropped < (SELECT min(p.first) FROM seachange.batch_partition p)"""
_GARBAGE = "SELECT segment_id FROM seachange.garbage ORDER BY segment_id"


def remove_log(db: Connection, floor: int) -> None:
    removed = SLICE_ROWS
    while removed == SLICE_ROWS:
        removed = db.execute(_SLICE_OF_LOG, (floor, SLICE_ROWS)).rowcount


def drop_partitions(db: Connection) -> None:
    if not query(db, _TRY_LOCK)[0][0]:
        return
    try:
        for first, beyond in query(db, _BELOW):
            if query(db, _IS_UNREAD, first, beyond)[0][0]:
                _drop_partition(db, first)
        db.execute(_FORGET_OWNERS)
    finally:
        if not db.broken:
            db.execute(_UNLOCK)


def _drop_partition(db: Connection, first: int) -> None:
    name = sql.Identifier("seachange", f"batch_{first}")
    attached = query(db, _ATTACHED, name.as_string(db))
    if attached:
        db.execute((_DETACH if attached[0][0] else _FINALIZE).format(name))
    db.execute(_DROP.format(name))
    db.execute(_FORGET_PARTITION, (first,))


def read_garbage(db: Connection) -> tuple[SegmentId, ...]:
    return tuple(SegmentId(id_) for (id_,) in query(db, _GARBAGE))
