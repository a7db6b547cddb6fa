"""Garbage collection in the catalog: removes what no snapshot can reach any more.

The floor is raised first, together with everything that determines what a reader at or above it sees. The rest, which
no reader uses, is removed in slices.

**Invariant:** nothing above the floor is removed, except indexes that were never public and that no open transaction
can know; for each other index, the newest generation swapped in at or below the floor, all later ones, and every delta
above its base stay.
"""

from __future__ import annotations

import sqlite3

from seachange.catalog.rows import BURNED_KEPT_US, SLICE_ROWS
from seachange.catalog.sqlite.connections import SqliteWriter
from seachange.catalog.sqlite.read import read_sequence_at
from seachange.catalog.sqlite.schema import POSITION_BITS
from seachange.model.ids import SegmentId

_LOWEST_MARK = "SELECT min(low_water) FROM node WHERE live = 1"
# Of exports that have not expired, and of feeds that have not ended.
_LOWEST_HELD = """SELECT min(held) FROM (SELECT held FROM export WHERE expires_us > ?
    UNION ALL SELECT position FROM feed WHERE ended = '')"""
_FLOOR = "SELECT floor FROM sequencer"
_SET_FLOOR = "UPDATE sequencer SET floor = ?"
_COMPACTED = """SELECT index_id, max(id), max(base) FROM generation WHERE swap <= ?
    GROUP BY index_id"""
# What was never public is in no query of the past: only open transactions may know it.
_DROPPED = "SELECT index_id FROM index_owner WHERE dropped <= ?1 OR (dropped <= ?2 AND NOT public)"

_FORGET_MEMBERS = """DELETE FROM generation_member WHERE generation_id IN
    (SELECT id FROM generation WHERE index_id = ?1 AND id < ?2)"""
_FORGET_GENERATIONS = "DELETE FROM generation WHERE index_id = ?1 AND id < ?2"
_FORGET_DELTAS = "UPDATE segment SET delta = NULL WHERE index_id = ?1 AND delta <= ?2"
_FORGET_OWNERS = "DELETE FROM index_owner WHERE dropped <= ?"
_LIST_GARBAGE = """INSERT INTO garbage SELECT id FROM segment WHERE delta IS NULL
    AND NOT EXISTS (SELECT 1 FROM generation_member m WHERE m.segment_id = segment.id)"""
_FORGET_SEGMENTS = """DELETE FROM segment WHERE delta IS NULL
    AND id IN (SELECT segment_id FROM garbage)"""
# The rows of dead epochs. The lock is held, so none of them can still attach a file.
_FORGET_EPOCHS = (
    """INSERT INTO garbage SELECT segment_id FROM intent
        WHERE epoch NOT IN (SELECT epoch FROM node WHERE live = 1)""",
    "DELETE FROM intent WHERE epoch NOT IN (SELECT epoch FROM node WHERE live = 1)",
    "DELETE FROM claim WHERE epoch NOT IN (SELECT epoch FROM node WHERE live = 1)",
    "DELETE FROM lock WHERE epoch NOT IN (SELECT epoch FROM node WHERE live = 1)",
    "DELETE FROM lock_wait WHERE epoch NOT IN (SELECT epoch FROM node WHERE live = 1)",
    "DELETE FROM node WHERE live = 0",
)
# Versions that a newer one had replaced at the floor, and all of objects dropped by then.
_FORGET_VERSIONS = (
    """DELETE FROM descriptor_version WHERE EXISTS (SELECT 1 FROM descriptor_version n
        WHERE n.id = descriptor_version.id AND n.version > descriptor_version.version
            AND n.seq <= ?1)""",
    """DELETE FROM descriptor_version WHERE body IS NULL AND seq <= ?1""",
    "DELETE FROM descriptor WHERE live = 0 AND changed <= ?1",
)
_FORGET_VIOLATIONS = "DELETE FROM violation WHERE seq <= ?"
_FORGET_BURNED = "DELETE FROM burned WHERE timestamp_us < ?"
_GARBAGE = "SELECT segment_id FROM garbage ORDER BY segment_id"
_SLICE_OF_BATCHES = """DELETE FROM batch WHERE position IN
    (SELECT position FROM batch WHERE index_id = ? AND position < ? LIMIT ?)"""
_SLICE_OF_LOG = """DELETE FROM log WHERE seq < ?
    AND seq < (SELECT min(seq) FROM log) + ?"""

# Above every generation, sequence and position of a dropped index.
_EVERYTHING = (1 << 46) - 1

Slice = tuple[str, tuple[int, ...]]


def raise_floor(db: sqlite3.Connection, now_us: int, retention_us: int) -> tuple[tuple[SegmentId, ...], list[Slice]]:
    """Returns the files that may be deleted, and the slices that are left to remove."""
    (floor,) = db.execute(_FLOOR).fetchone()
    (mark,) = db.execute(_LOWEST_MARK).fetchone()
    (held,) = db.execute(_LOWEST_HELD, (now_us,)).fetchone()
    horizon = min(mark, read_sequence_at(db, now_us - retention_us))
    floor = max(floor, horizon if held is None else min(horizon, held))
    db.execute(_SET_FLOOR, (floor,))
    bounds = _forget_contents(db, floor, mark)
    for statement in _FORGET_EPOCHS:
        db.execute(statement)
    for statement in _FORGET_VERSIONS:
        db.execute(statement, (floor,))
    db.execute(_FORGET_VIOLATIONS, (floor,))
    db.execute(_FORGET_BURNED, (now_us - max(retention_us, BURNED_KEPT_US),))
    db.execute(_LIST_GARBAGE)
    db.execute(_FORGET_SEGMENTS)
    garbage = tuple(SegmentId(id_) for (id_,) in db.execute(_GARBAGE))
    slices: list[Slice] = [
        (_SLICE_OF_BATCHES, (index_id, (base + 1) << POSITION_BITS, SLICE_ROWS)) for index_id, base in bounds
    ]
    # Owners are removed last: as long as one exists, another run finds what this one left.
    slices.append((_FORGET_OWNERS, (floor,)))
    slices.append((_SLICE_OF_LOG, (floor, SLICE_ROWS)))
    return garbage, slices


def _forget_contents(db: sqlite3.Connection, floor: int, mark: int) -> list[tuple[int, int]]:
    """Removes generations and delta segments; returns, per index, the sequence up to which its deltas are no longer
    read."""
    dropped = [row[0] for row in db.execute(_DROPPED, (floor, mark))]
    compacted = [*db.execute(_COMPACTED, (floor,)), *((i, _EVERYTHING, _EVERYTHING) for i in dropped)]
    for index_id, newest, base in compacted:
        db.execute(_FORGET_MEMBERS, (index_id, newest))
        db.execute(_FORGET_GENERATIONS, (index_id, newest))
        db.execute(_FORGET_DELTAS, (index_id, base))
    return [(index_id, base) for index_id, _, base in compacted]


def remove_slices(writer: SqliteWriter, slices: list[Slice]) -> None:
    for statement, values in slices:
        removed = SLICE_ROWS
        while removed == SLICE_ROWS:
            with writer as db:
                removed = db.execute(statement, values).rowcount
