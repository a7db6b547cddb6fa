"""The state of sequences in SQLite, within the writer's transaction."""

from __future__ import annotations

import sqlite3

from seachange.model.ids import DescriptorId
from seachange.model.schema.sequences import SequenceBlock, SequenceLimits, SequenceState, take_block

_READ = "SELECT last, called FROM sequence WHERE id = ? AND run = ?"
_WRITE = """INSERT INTO sequence (id, run, last, called) VALUES (?, ?, ?, ?)
    ON CONFLICT (id, run) DO UPDATE SET last = excluded.last, called = excluded.called"""


def read_sequence(db: sqlite3.Connection, id_: DescriptorId, run: int) -> SequenceState | None:
    row = db.execute(_READ, (id_, run)).fetchone()
    return None if row is None else SequenceState(row[0], bool(row[1]))


def write_sequence(db: sqlite3.Connection, id_: DescriptorId, run: int, state: SequenceState) -> None:
    db.execute(_WRITE, (id_, run, state.last, state.called))


def draw_sequence(
    db: sqlite3.Connection, id_: DescriptorId, run: int, limits: SequenceLimits, count: int
) -> SequenceBlock:
    block, state = take_block(limits, read_sequence(db, id_, run), count)
    write_sequence(db, id_, run, state)
    return block


def move_sequence(
    db: sqlite3.Connection, id_: DescriptorId, run: int, expected: SequenceState, state: SequenceState
) -> bool:
    if read_sequence(db, id_, run) != expected:
        return False
    write_sequence(db, id_, run, state)
    return True
