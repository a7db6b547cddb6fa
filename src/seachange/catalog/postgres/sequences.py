"""The state of sequences in PostgreSQL: one row each, locked while values are taken."""

from __future__ import annotations

from seachange.catalog.postgres.connections import Connection
from seachange.catalog.reads import sequence_from
from seachange.model.ids import DescriptorId
from seachange.model.schema.sequences import SequenceBlock, SequenceLimits, SequenceState, take_block

# A missing row is inserted, so that there is one to lock; `last` NULL means that no value was taken.
_MAKE = "INSERT INTO seachange.sequence (id, run) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_LOCK = "SELECT last, called FROM seachange.sequence WHERE id = %s AND run = %s FOR UPDATE"
_WRITE = "UPDATE seachange.sequence SET last = %s, called = %s WHERE id = %s AND run = %s"


def _lock(db: Connection, id_: DescriptorId, run: int) -> SequenceState | None:
    rows = db.execute(_LOCK, (id_, run)).fetchall()
    if not rows:
        db.execute(_MAKE, (id_, run))
        rows = db.execute(_LOCK, (id_, run)).fetchall()
    return sequence_from(rows)


def write_sequence(db: Connection, id_: DescriptorId, run: int, state: SequenceState) -> None:
    with db.transaction():
        _lock(db, id_, run)
        db.execute(_WRITE, (state.last, state.called, id_, run))


def draw_sequence(db: Connection, id_: DescriptorId, run: int, limits: SequenceLimits, count: int) -> SequenceBlock:
    with db.transaction():
        block, state = take_block(limits, _lock(db, id_, run), count)
        db.execute(_WRITE, (state.last, state.called, id_, run))
    return block


def move_sequence(db: Connection, id_: DescriptorId, run: int, expected: SequenceState, state: SequenceState) -> bool:
    with db.transaction():
        if _lock(db, id_, run) != expected:
            return False
        db.execute(_WRITE, (state.last, state.called, id_, run))
    return True
