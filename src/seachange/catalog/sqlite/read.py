"""Reads of the log, and of the state at a sequence, inside one read transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from seachange.catalog.rows import (
    BATCHES,
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
    newest_at,
    segment_from,
    unpack,
)
from seachange.catalog.sqlite.schema import POSITION_BITS
from seachange.model.ids import Epoch, IndexId, KeyHash, Seq
from seachange.model.log import LogEntry, RecordedViolation, RowViolation
from seachange.model.schema.objects import DroppedDescriptor, PublishedDescriptor
from seachange.model.segments import Generation, IndexContents, InlineBatch, Segment

HEAD = "SELECT max(seq) FROM log"
FLOOR = "SELECT floor FROM sequencer"
_CHECK = """SELECT s.floor, n.live FROM sequencer s LEFT JOIN node n ON n.epoch = ?
    WHERE s.one = 1"""
_LOG = """SELECT seq, timestamp_us, commit_id, writes, shares, bulk, touched, parts
    FROM log WHERE seq > ? ORDER BY seq"""
_LOG_BATCHES = """SELECT position >> 16, index_id, layout_id, rows, payload, checksum
    FROM batch WHERE position >= ? ORDER BY position"""
_LOG_SEGMENTS = """SELECT delta, id, index_id, layout_id, kind, seq, fresh, rows, size_bytes, checksum,
        key_min, key_max
    FROM segment WHERE delta > ? ORDER BY delta, id"""
_LOG_DESCRIPTORS = """SELECT seq, id, version, body, checksum
    FROM descriptor_version WHERE seq > ? ORDER BY seq, id"""
_LOG_GENERATIONS = """SELECT id, index_id, base, swap
    FROM generation WHERE swap > ? ORDER BY swap, id"""
_MEMBERS = """SELECT m.deleted, s.id, s.index_id, s.layout_id, s.kind, s.seq, s.fresh, s.rows,
        s.size_bytes, s.checksum, s.key_min, s.key_max
    FROM generation_member m JOIN segment s ON s.id = m.segment_id
    WHERE m.generation_id = ? ORDER BY m.ordinal"""
_DESCRIPTORS_AT = """SELECT id, version, body, checksum FROM descriptor_version d
    WHERE body IS NOT NULL AND version = (SELECT max(version) FROM descriptor_version n
        WHERE n.id = d.id AND n.seq <= ?)
    ORDER BY id"""
_DROPPED = """SELECT d.id, d.version, v.body, d.changed, v.version, v.checksum
    FROM descriptor d JOIN descriptor_version v ON v.id = d.id
    WHERE d.live = 0 AND v.version = (SELECT max(n.version) FROM descriptor_version n
        WHERE n.id = d.id AND n.body IS NOT NULL)
    ORDER BY d.changed, d.id"""
_GENERATION_AT = """SELECT id, index_id, base, swap FROM generation
    WHERE index_id = ? AND base <= ? ORDER BY id DESC LIMIT 1"""
_NEWEST_GENERATION = """SELECT id, index_id, base, swap FROM generation
    WHERE index_id = ? ORDER BY id DESC LIMIT 1"""
_INDEX_BATCHES = """SELECT position >> 16, index_id, layout_id, rows, payload, checksum
    FROM batch WHERE index_id = ? AND position >= ? AND position < ? ORDER BY position"""
_INDEX_SEGMENTS = """SELECT delta, id, index_id, layout_id, kind, seq, fresh, rows, size_bytes,
        checksum, key_min, key_max
    FROM segment WHERE index_id = ? AND delta > ? AND delta <= ? ORDER BY delta, id"""
_SHARES = "SELECT seq, shares FROM log WHERE seq > ? AND length(shares) > 0 ORDER BY seq"
_VIOLATIONS = "SELECT seq, key, text, session FROM violation WHERE seq > ? ORDER BY seq"
_BOUNDS = "SELECT min(seq), max(seq) FROM log"
_TIMESTAMP = "SELECT timestamp_us FROM log WHERE seq = ?"


def check(db: sqlite3.Connection, epoch: Epoch, snapshot: Seq) -> None:
    check_snapshot(epoch, snapshot, db.execute(_CHECK, (epoch,)).fetchone())


def read_entries(db: sqlite3.Connection, epoch: Epoch, after: Seq) -> tuple[LogEntry, ...]:
    rows = db.execute(_LOG, (after,)).fetchall()
    kinds = 0
    for row in rows:
        kinds |= row[-1]
    parts = EntryParts()
    if kinds & BATCHES:
        first = (after + 1) << POSITION_BITS
        parts.batches = group(_batches(db.execute(_LOG_BATCHES, (first,))))
    if kinds & SEGMENTS:
        parts.segments = group(_segments(db.execute(_LOG_SEGMENTS, (after,))))
    if kinds & DESCRIPTORS:
        found = db.execute(_LOG_DESCRIPTORS, (after,))
        parts.descriptors = group((row[0], descriptor_from(row[1:])) for row in found)
    if kinds & GENERATIONS:
        swaps = db.execute(_LOG_GENERATIONS, (after,)).fetchall()
        parts.generations = group((row[3], _generation(db, row)) for row in swaps)
    check(db, epoch, after)
    return tuple(entry_from(row, unpack, parts) for row in rows)


def read_first_reliance(db: sqlite3.Connection, epoch: Epoch, keys: Iterable[KeyHash], after: Seq) -> Seq | None:
    wanted = frozenset(keys)
    found = next((seq for seq, blob in db.execute(_SHARES, (after,)) if not wanted.isdisjoint(unpack(blob))), None)
    check(db, epoch, after)
    return None if found is None else Seq(found)


def read_first_violation(db: sqlite3.Connection, keys: Iterable[KeyHash], after: Seq) -> RecordedViolation | None:
    wanted = frozenset(keys)
    for seq, key, text, session in db.execute(_VIOLATIONS, (after,)):
        if key in wanted:
            return RecordedViolation(RowViolation(KeyHash(key), text, session), Seq(seq))
    return None


def _batches(rows: sqlite3.Cursor) -> Iterator[tuple[int, InlineBatch]]:
    return ((row[0], batch_from(row[1:])) for row in rows)


def _segments(rows: sqlite3.Cursor) -> Iterator[tuple[int, Segment]]:
    return ((row[0], segment_from(row[1:])) for row in rows)


def _generation(db: sqlite3.Connection, row: Row) -> Generation:
    return generation_from(row, db.execute(_MEMBERS, (row[0],)))


def read_descriptors(db: sqlite3.Connection, epoch: Epoch, at: Seq) -> tuple[PublishedDescriptor, ...]:
    found = tuple(map(descriptor_from, db.execute(_DESCRIPTORS_AT, (at,))))
    check(db, epoch, at)
    return found


def read_dropped(db: sqlite3.Connection) -> tuple[DroppedDescriptor, ...]:
    return tuple(map(dropped_from, db.execute(_DROPPED)))


def read_contents(db: sqlite3.Connection, epoch: Epoch, index_id: IndexId, at: Seq) -> IndexContents:
    row = db.execute(_GENERATION_AT, (index_id, at)).fetchone()
    generation = _generation(db, row) if row else None
    base = generation.base if generation else -1
    bounds = ((base + 1) << POSITION_BITS, (at + 1) << POSITION_BITS)
    batches = _batches(db.execute(_INDEX_BATCHES, (index_id, *bounds)))
    segments = _segments(db.execute(_INDEX_SEGMENTS, (index_id, base, at)))
    contents = IndexContents(index_id, at, generation, deltas_from(batches, segments))
    check(db, epoch, at)
    return contents


def read_newest_generation(db: sqlite3.Connection, index_id: IndexId) -> Generation | None:
    row = db.execute(_NEWEST_GENERATION, (index_id,)).fetchone()
    return _generation(db, row) if row else None


def read_sequence_at(db: sqlite3.Connection, timestamp_us: int) -> Seq:
    low, high = db.execute(_BOUNDS).fetchone()

    def timestamp_of(seq: int) -> int:
        return int(db.execute(_TIMESTAMP, (seq,)).fetchone()[0])

    return newest_at(timestamp_us, low, high, timestamp_of)
