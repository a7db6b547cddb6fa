"""Reads of the log, and of the state at a sequence.

Data above the floor never changes, so several statements may read it one after the other, if the last one checks the
epoch and the floor. Only a generation and the deltas above its base must come from one snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from seachange.catalog.postgres.arrays import Bigints
from seachange.catalog.postgres.connections import Connection, one_snapshot
from seachange.catalog.rows import (
    DESCRIPTORS,
    GENERATIONS,
    SEGMENTS,
    EntryParts,
    Row,
    batch_from,
    check_snapshot,
    deltas_from,
    descriptor_from,
    dropped_from,
    entry_from,
    generation_from,
    group,
    segment_from,
)
from seachange.model.ids import Epoch, IndexId, KeyHash, Seq
from seachange.model.log import LogEntry, RecordedViolation, RowViolation
from seachange.model.schema.objects import DroppedDescriptor, PublishedDescriptor
from seachange.model.segments import Generation, IndexContents

_CHECK = """SELECT s.floor, n.live FROM seachange.sequencer s
    LEFT JOIN seachange.node n ON n.epoch = %b"""
# Without the upper bounds a planner without statistics reads the whole log.
_LOG = """SELECT l.seq, l.timestamp_us, l.commit_id, l.writes, l.shares, l.bulk, l.touched,
        l.parts, b.index_id, b.layout_id, b.rows, b.payload, b.checksum, c.floor, c.live
    FROM seachange.log l
    LEFT JOIN seachange.batch b ON b.seq = l.seq AND b.seq > %b AND b.seq <= seachange.head()
    CROSS JOIN (SELECT s.floor, n.live FROM seachange.sequencer s
        LEFT JOIN seachange.node n ON n.epoch = %b) c
    WHERE l.seq > %b AND l.seq <= seachange.head() ORDER BY l.seq, b.ordinal"""
_FIRST_RELIANCE = """SELECT min(seq) FROM seachange.log
    WHERE seq > %b AND seq <= seachange.head() AND shares && %b::bigint[]"""
_FIRST_VIOLATION = """SELECT seq, key, text, session FROM seachange.violation
    WHERE seq > %b AND key = ANY (%b::bigint[]) ORDER BY seq LIMIT 1"""
_LOG_COLUMNS = 8
_BATCH_COLUMNS = slice(8, 13)
_CHECK_COLUMNS = slice(13, 15)
_LOG_SEGMENTS = """SELECT delta, id, index_id, layout_id, kind, seq, fresh, rows, size_bytes,
        checksum, key_min, key_max
    FROM seachange.segment WHERE delta > %b AND delta <= %b ORDER BY delta, id"""
_LOG_DESCRIPTORS = """SELECT seq, id, version, body, checksum FROM seachange.descriptor_version
    WHERE seq > %b AND seq <= %b ORDER BY seq, id"""
_LOG_GENERATIONS = """SELECT id, index_id, base, swap FROM seachange.generation
    WHERE swap > %b AND swap <= %b ORDER BY swap, id"""
_MEMBERS = """SELECT m.deleted, s.id, s.index_id, s.layout_id, s.kind, s.seq, s.fresh, s.rows,
        s.size_bytes, s.checksum, s.key_min, s.key_max
    FROM seachange.generation_member m JOIN seachange.segment s ON s.id = m.segment_id
    WHERE m.generation_id = %b ORDER BY m.ordinal"""
_DESCRIPTORS_AT = """SELECT d.id, d.version, d.body, d.checksum FROM seachange.descriptor_version d
    WHERE d.body IS NOT NULL AND d.version = (SELECT max(n.version)
        FROM seachange.descriptor_version n WHERE n.id = d.id AND n.seq <= %b)
    ORDER BY d.id"""
_DROPPED = """SELECT d.id, d.version, v.body, d.changed, v.version, v.checksum FROM seachange.descriptor d
    JOIN seachange.descriptor_version v ON v.id = d.id
    WHERE NOT d.live AND v.version = (SELECT max(n.version) FROM seachange.descriptor_version n
        WHERE n.id = d.id AND n.body IS NOT NULL)
    ORDER BY d.changed, d.id"""
_GENERATION_AT = """SELECT id, index_id, base, swap FROM seachange.generation
    WHERE index_id = %b AND base <= %b ORDER BY id DESC LIMIT 1"""
_NEWEST_GENERATION = """SELECT id, index_id, base, swap FROM seachange.generation
    WHERE index_id = %b ORDER BY id DESC LIMIT 1"""
_INDEX_BATCHES = """SELECT seq, index_id, layout_id, rows, payload, checksum FROM seachange.batch
    WHERE index_id = %b AND seq > %b AND seq <= %b ORDER BY seq, ordinal"""
_INDEX_SEGMENTS = """SELECT delta, id, index_id, layout_id, kind, seq, fresh, rows, size_bytes,
        checksum, key_min, key_max
    FROM seachange.segment WHERE index_id = %b AND delta > %b AND delta <= %b
    ORDER BY delta, id"""


def query(db: Connection, text: LiteralString, *values: object) -> list[Row]:
    return db.execute(text, values, binary=True).fetchall()


def check(db: Connection, epoch: Epoch, snapshot: Seq) -> None:
    check_snapshot(epoch, snapshot, query(db, _CHECK, epoch)[0])


def read_entries(db: Connection, epoch: Epoch, after: Seq) -> tuple[LogEntry, ...]:
    values = (after, epoch, after)
    rows = db.execute(_LOG, values, prepare=True, binary=True).fetchall()
    if not rows:
        # If nothing is read, nothing can be missing.
        return ()
    check_snapshot(epoch, after, rows[0][_CHECK_COLUMNS])
    parts = EntryParts()
    with_batches = [row for row in rows if row[_LOG_COLUMNS] is not None]
    parts.batches = group((row[0], batch_from(row[_BATCH_COLUMNS])) for row in with_batches)
    # An entry has one row per batch, at least one.
    entries = {row[0]: row[:_LOG_COLUMNS] for row in rows}
    _read_parts(db, epoch, after, tuple(entries.values()), parts)
    return tuple(entry_from(row, tuple, parts) for row in entries.values())


def read_first_reliance(db: Connection, epoch: Epoch, keys: Sequence[KeyHash], after: Seq) -> Seq | None:
    ((found,),) = query(db, _FIRST_RELIANCE, after, Bigints(keys))
    check(db, epoch, after)
    return None if found is None else Seq(found)


def read_first_violation(db: Connection, keys: Sequence[KeyHash], after: Seq) -> RecordedViolation | None:
    for seq, key, shown, session in query(db, _FIRST_VIOLATION, after, Bigints(keys)):
        return RecordedViolation(RowViolation(KeyHash(key), shown, session), Seq(seq))
    return None


def _read_parts(db: Connection, epoch: Epoch, after: Seq, entries: Sequence[Row], parts: EntryParts) -> None:
    kinds = 0
    for row in entries:
        kinds |= row[-1]
    last = entries[-1][0]
    if not kinds & (SEGMENTS | DESCRIPTORS | GENERATIONS):
        return
    if kinds & SEGMENTS:
        found = query(db, _LOG_SEGMENTS, after, last)
        parts.segments = group((row[0], segment_from(row[1:])) for row in found)
    if kinds & DESCRIPTORS:
        found = query(db, _LOG_DESCRIPTORS, after, last)
        parts.descriptors = group((row[0], descriptor_from(row[1:])) for row in found)
    if kinds & GENERATIONS:
        found = query(db, _LOG_GENERATIONS, after, last)
        parts.generations = group((row[3], _generation(db, row)) for row in found)
    check(db, epoch, after)


def _generation(db: Connection, row: Row) -> Generation:
    return generation_from(row, query(db, _MEMBERS, row[0]))


def read_descriptors(db: Connection, epoch: Epoch, at: Seq) -> tuple[PublishedDescriptor, ...]:
    found = tuple(map(descriptor_from, query(db, _DESCRIPTORS_AT, at)))
    check(db, epoch, at)
    return found


def read_dropped(db: Connection) -> tuple[DroppedDescriptor, ...]:
    return tuple(map(dropped_from, query(db, _DROPPED)))


def read_contents(db: Connection, epoch: Epoch, index_id: IndexId, at: Seq) -> IndexContents:
    with one_snapshot(db):
        found = query(db, _GENERATION_AT, index_id, at)
        generation = _generation(db, found[0]) if found else None
        base = generation.base if generation else -1
        batches = query(db, _INDEX_BATCHES, index_id, base, at)
        segments = query(db, _INDEX_SEGMENTS, index_id, base, at)
        check(db, epoch, at)
    deltas = deltas_from(
        ((row[0], batch_from(row[1:])) for row in batches),
        ((row[0], segment_from(row[1:])) for row in segments),
    )
    return IndexContents(index_id, at, generation, deltas)


def read_newest_generation(db: Connection, index_id: IndexId) -> Generation | None:
    with one_snapshot(db):
        found = query(db, _NEWEST_GENERATION, index_id)
        return _generation(db, found[0]) if found else None
