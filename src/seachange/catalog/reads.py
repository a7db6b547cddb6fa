"""Reads that both back ends answer with the same statements.

The statements are written for PostgreSQL; the SQLite catalog has the same tables without a schema, and another mark for
parameters. Data above the floor never changes, so several statements may read it one after the other, if the last one
checks the epoch and the floor. Only what is read with `snapshot` must come from one snapshot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, LiteralString, Protocol, TypeVar

from seachange.catalog.rows import (
    DESCRIPTORS,
    GENERATIONS,
    SEGMENTS,
    EntryParts,
    Row,
    batch_from,
    change_from,
    check_snapshot,
    deltas_from,
    descriptor_from,
    dropped_from,
    event_from,
    generation_from,
    group,
    held_from,
    job_from,
    node_from,
    segment_from,
)
from seachange.model.change_history import PublishedChange
from seachange.model.exports import ExportRecord
from seachange.model.feeds import FeedRecord
from seachange.model.ids import DescriptorId, Epoch, IndexId, KeyHash, SegmentId, Seq, TableId
from seachange.model.jobs import Event, JobId, JobRecord
from seachange.model.locking import LockHeld, LockMode
from seachange.model.log import NodeRecord
from seachange.model.schema.objects import DroppedDescriptor, PublishedDescriptor
from seachange.model.schema.sequences import SequenceState
from seachange.model.segments import AttachedFile, Generation, Holdings, IndexContents, KnownFiles

T = TypeVar("T")

_IDENTITY = "SELECT database_id FROM seachange.sequencer"
_NODES = """SELECT epoch, name, live, low_water, heartbeat_us, expiry_ms, format, write_mark, holders,
    release, latency_us, usual_us, answered FROM seachange.node ORDER BY epoch"""
_CHECK = """SELECT s.floor, n.live FROM seachange.sequencer s
    LEFT JOIN seachange.node n ON n.epoch = %b"""
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
_MIN_VERSIONS = "SELECT id, min_version FROM seachange.descriptor WHERE min_version > 0"
_GENERATION_AT = """SELECT id, index_id, base, swap FROM seachange.generation
    WHERE index_id = %b AND base <= %b ORDER BY id DESC LIMIT 1"""
_NEWEST_GENERATION = """SELECT id, index_id, base, swap FROM seachange.generation
    WHERE index_id = %b ORDER BY id DESC LIMIT 1"""
_INDEX_SEGMENTS = """SELECT delta, id, index_id, layout_id, kind, seq, fresh, rows, size_bytes,
        checksum, key_min, key_max
    FROM seachange.segment WHERE index_id = %b AND delta > %b AND delta <= %b
    ORDER BY delta, id"""
_SEQUENCE = "SELECT last, called FROM seachange.sequence WHERE id = %b AND run = %b"
_HOLDERS = "SELECT key, epoch, actor, strength FROM seachange.lock WHERE key = %b ORDER BY epoch, actor"
_HELD = "SELECT key, epoch, actor, strength FROM seachange.lock WHERE strength = %b ORDER BY key, epoch, actor"
_HOLDINGS = """WITH newest AS
        (SELECT index_id, max(id) AS id, max(base) AS base FROM seachange.generation GROUP BY index_id)
    SELECT count(*), CAST(coalesce(sum(s.size_bytes), 0) AS bigint),
        count(CASE WHEN (s.delta IS NULL OR s.delta <= n.base)
            AND NOT EXISTS (SELECT 1 FROM seachange.generation_member m
                WHERE m.generation_id = n.id AND m.segment_id = s.id)
            THEN 1 END),
        (SELECT count(*) FROM seachange.garbage)
    FROM seachange.segment s LEFT JOIN newest n ON n.index_id = s.index_id"""
_ATTACHED_FILES = "SELECT id, size_bytes, checksum FROM seachange.segment ORDER BY id"
_NEWEST_FILES = "SELECT id FROM seachange.segment ORDER BY id DESC LIMIT %b"
_IN_USE = """SELECT segment_id FROM seachange.intent WHERE epoch IN (SELECT epoch FROM seachange.node WHERE live)
    UNION SELECT segment_id FROM seachange.job_file"""
_UNNEEDED = """SELECT segment_id FROM seachange.garbage UNION SELECT segment_id FROM seachange.intent
    WHERE epoch NOT IN (SELECT epoch FROM seachange.node WHERE live)"""
_JOBS: LiteralString = """SELECT id, revision, status, request, descriptors, body, epoch, created_us, updated_us,
    updated_seq FROM seachange.job"""
_ALL_JOBS = _JOBS + " ORDER BY id"
_OPEN_JOBS = _JOBS + " WHERE status NOT IN ('succeeded', 'failed', 'canceled') ORDER BY id"
_ONE_JOB = _JOBS + " WHERE id = %b"
_EXPORTS = """SELECT table_id, snapshot, held, metadata, created_us, expires_us FROM seachange.export
    ORDER BY table_id, snapshot"""
_FEEDS = """SELECT name, database, owner, tables, position, created_us, ended FROM seachange.feed
    ORDER BY database, name"""
_WRITTEN_FILES = """SELECT CAST(coalesce(sum(rows), 0) AS bigint), CAST(coalesce(sum(size_bytes), 0) AS bigint)
    FROM seachange.segment WHERE index_id = %b AND delta > %b"""
_CHANGES = "SELECT seq, timestamp_us, body FROM seachange.change ORDER BY seq"
_EVENTS = "SELECT timestamp_us, job_id, seq, text FROM seachange.event ORDER BY id"


class Query(Protocol):
    """Runs a statement in one read of the catalog."""

    def __call__(self, text: LiteralString, /, *values: object) -> list[Row]: ...


def check(query: Query, epoch: Epoch, snapshot: Seq) -> None:
    check_snapshot(epoch, snapshot, query(_CHECK, epoch)[0])


def read_parts(query: Query, epoch: Epoch, after: Seq, entries: Sequence[Row], parts: EntryParts) -> None:
    """The parts of log entries, other than inline batches, that their last field says they have."""
    last, kinds = entries[-1][0], 0
    for row in entries:
        kinds |= row[-1]
    if not kinds & (SEGMENTS | DESCRIPTORS | GENERATIONS):
        return
    if kinds & SEGMENTS:
        parts.segments = group((row[0], segment_from(row[1:])) for row in query(_LOG_SEGMENTS, after, last))
    if kinds & DESCRIPTORS:
        parts.descriptors = group((row[0], descriptor_from(row[1:])) for row in query(_LOG_DESCRIPTORS, after, last))
    if kinds & GENERATIONS:
        parts.generations = group((row[3], _generation(query, row)) for row in query(_LOG_GENERATIONS, after, last))
    check(query, epoch, after)


def _generation(query: Query, row: Row) -> Generation:
    return generation_from(row, query(_MEMBERS, row[0]))


class CatalogReads(ABC):
    """The methods of the port that only read, and do so alike in both back ends."""

    # Reads an array of numbers.
    _numbers: Callable[[Any], tuple[int, ...]]

    @abstractmethod
    def _read(self, work: Callable[[Query], T], snapshot: bool = False) -> T:
        """Runs idempotent work that reads."""

    @abstractmethod
    def _index_batches(self, query: Query, index_id: IndexId, base: int, at: Seq) -> list[Row]:
        """The inline batches of an index above `base` up to `at`: sequence, then the batch."""

    def _rows(self, text: LiteralString, *values: object) -> list[Row]:
        return self._read(lambda query: query(text, *values))

    def identity(self) -> str | None:
        found: str | None = self._rows(_IDENTITY)[0][0]
        return found

    def nodes(self) -> tuple[NodeRecord, ...]:
        return tuple(map(node_from, self._rows(_NODES)))

    def descriptors(self, epoch: Epoch, at: Seq) -> tuple[PublishedDescriptor, ...]:
        def read(query: Query) -> tuple[PublishedDescriptor, ...]:
            found = tuple(map(descriptor_from, query(_DESCRIPTORS_AT, at)))
            check(query, epoch, at)
            return found

        return self._read(read)

    def dropped(self) -> tuple[DroppedDescriptor, ...]:
        return tuple(map(dropped_from, self._rows(_DROPPED)))

    def min_versions(self) -> dict[DescriptorId, int]:
        return {DescriptorId(id_): version for id_, version in self._rows(_MIN_VERSIONS)}

    def index_contents(self, epoch: Epoch, index_id: IndexId, at: Seq) -> IndexContents:
        def read(query: Query) -> IndexContents:
            found = query(_GENERATION_AT, index_id, at)
            generation = _generation(query, found[0]) if found else None
            base = generation.base if generation else -1
            batches = self._index_batches(query, index_id, base, at)
            segments = query(_INDEX_SEGMENTS, index_id, base, at)
            check(query, epoch, at)
            deltas = deltas_from(
                ((row[0], batch_from(row[1:])) for row in batches),
                ((row[0], segment_from(row[1:])) for row in segments),
            )
            return IndexContents(index_id, at, generation, deltas)

        return self._read(read, snapshot=True)

    def newest_generation(self, index_id: IndexId) -> Generation | None:
        def read(query: Query) -> Generation | None:
            found = query(_NEWEST_GENERATION, index_id)
            return _generation(query, found[0]) if found else None

        return self._read(read, snapshot=True)

    def sequence_state(self, id_: DescriptorId, run: int) -> SequenceState | None:
        return sequence_from(self._rows(_SEQUENCE, id_, run))

    def lock_holders(self, key: KeyHash) -> tuple[LockHeld, ...]:
        return tuple(map(held_from, self._rows(_HOLDERS, key)))

    def locks_held(self, strength: LockMode) -> tuple[LockHeld, ...]:
        return tuple(map(held_from, self._rows(_HELD, strength.value)))

    def holdings(self) -> Holdings:
        return Holdings(*self._rows(_HOLDINGS)[0])

    def known_files(self) -> KnownFiles:
        def read(query: Query) -> KnownFiles:
            attached = tuple(AttachedFile(SegmentId(id_), size, sum_) for id_, size, sum_ in query(_ATTACHED_FILES))
            return KnownFiles(attached, frozenset(_ids(query(_IN_USE))), frozenset(_ids(query(_UNNEEDED))))

        return self._read(read, snapshot=True)

    def newest_files(self, most: int) -> tuple[SegmentId, ...]:
        return _ids(self._rows(_NEWEST_FILES, most))

    def jobs(self, unfinished: bool = False) -> tuple[JobRecord, ...]:
        found = self._rows(_OPEN_JOBS if unfinished else _ALL_JOBS)
        return tuple(job_from(row, self._numbers) for row in found)

    def job(self, job_id: JobId) -> JobRecord | None:
        found = self._rows(_ONE_JOB, job_id)
        return job_from(found[0], self._numbers) if found else None

    def exports(self) -> tuple[ExportRecord, ...]:
        rows = self._rows(_EXPORTS)
        return tuple(ExportRecord(TableId(id_), snapshot, Seq(held), *rest) for id_, snapshot, held, *rest in rows)

    def feeds(self) -> tuple[FeedRecord, ...]:
        return tuple(
            FeedRecord(name, database, owner, tuple(map(TableId, map(int, tables.split()))), Seq(position), *rest)
            for name, database, owner, tables, position, *rest in self._rows(_FEEDS)
        )

    @abstractmethod
    def _written_inline(self, index_id: IndexId, after: Seq) -> Row:
        """Rows and bytes of inline batches."""

    def written_since(self, index_id: IndexId, after: Seq) -> tuple[int, int]:
        inline, files = self._written_inline(index_id, after), self._rows(_WRITTEN_FILES, index_id, after)[0]
        return int(inline[0]) + int(files[0]), int(inline[1]) + int(files[1])

    def changes(self) -> tuple[PublishedChange, ...]:
        return tuple(map(change_from, self._rows(_CHANGES)))

    def events(self) -> tuple[Event, ...]:
        return tuple(map(event_from, self._rows(_EVENTS)))


def _ids(rows: list[Row]) -> tuple[SegmentId, ...]:
    return tuple(SegmentId(id_) for (id_,) in rows)


def sequence_from(rows: list[Row]) -> SequenceState | None:
    """A row without a value is there to be locked."""
    return None if not rows or rows[0][0] is None else SequenceState(rows[0][0], bool(rows[0][1]))
