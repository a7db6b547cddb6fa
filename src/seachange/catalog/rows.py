"""Code that both back ends share: requests to rows, and rows to values.

**Invariant:** no descriptor is read whose checksum differs from the recorded one. Descriptors of release 0.1.0 have
none until their next version.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import xxhash

from seachange import errors
from seachange.model.change_history import CHANGE_CODEC, PublishedChange
from seachange.model.codecs.descriptor_json import decode_descriptor
from seachange.model.ids import CommitId, DescriptorId, Epoch, GenerationId, IndexId, KeyHash, LayoutId, Seq
from seachange.model.jobs import Event, JobId, JobRecord, JobRequest, JobStatus
from seachange.model.locking import LockHeld, LockQueues, LockStrength, LockWait, TableLock, lock_mode
from seachange.model.log import CommitBlocked, CommitRequest, DescriptorChange, LogEntry, NodeRecord
from seachange.model.pace import Pace
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor, DroppedDescriptor, PublishedDescriptor
from seachange.model.segments import Generation, GenerationMember, IndexDelta, InlineBatch, Segment, SegmentKind
from seachange.model.sessions import AskedSession, SessionRequest
from seachange.model.states import State

T = TypeVar("T")

# Rows are tuples as the database driver returns them.
Row = tuple[Any, ...]

# Flags for the tables with parts of a log entry, so that a follower reads no others.
BATCHES = 1
SEGMENTS = 2
DESCRIPTORS = 4
GENERATIONS = 8

# A commit's inline batches are numbered; both back ends store the number in sixteen bits.
BATCHES_MAX = 1 << 16

# A tombstoned commit id must outlive every call that may still carry it, however short the retention.
BURNED_KEPT_US = 24 * 3_600 * 1_000_000

# How long events, finished jobs and the history of schema changes are kept; of the latter so many at most.
EVENTS_KEPT_US = 14 * 24 * 3_600 * 1_000_000
CHANGES_KEPT_MAX = 10_000

# Garbage is removed in slices, so that no commit waits long for the sequencer lock.
SLICE_ROWS = 5_000


def pack(numbers: Sequence[int]) -> bytes:
    """Signed 64-bit numbers as little-endian bytes."""
    return struct.pack(f"<{len(numbers)}q", *numbers) if numbers else b""


def unpack(blob: bytes) -> tuple[int, ...]:
    """The inverse of `pack`.

    >>> unpack(pack((1, -2)))
    (1, -2)
    """
    return struct.unpack(f"<{len(blob) // 8}q", blob) if blob else ()


def parts_of(request: CommitRequest) -> int:
    return (
        (BATCHES if request.batches else 0)
        | (SEGMENTS if request.segments else 0)
        | (DESCRIPTORS if request.descriptors else 0)
        | (GENERATIONS if request.generations else 0)
    )


def check_request(request: CommitRequest) -> None:
    """Rejects requests that only a bug can create."""
    if len(request.batches) >= BATCHES_MAX:
        raise errors.Bug(detail=f"{len(request.batches)} inline batches in one commit")
    _check_once("descriptor", [change.id for change in request.descriptors])
    _check_once("index", [change.index_id for change in request.generations])
    _check_once("job", [change.id for change in request.jobs])


def _check_once(what: str, ids: Sequence[int]) -> None:
    if len(set(ids)) != len(ids):
        raise errors.Bug(detail=f"one commit changes one {what} twice")


def has_changes(request: CommitRequest) -> bool:
    """Whether the request has any of the rarely used parts: all but inline rows."""
    published = request.descriptors or request.raises or request.generations
    return bool(published or request.segments or request.jobs or request.violations or request.change)


def attached_segments(request: CommitRequest) -> tuple[Segment, ...]:
    """Every segment that the request names, deltas first, each once."""
    found = {segment.id: segment for segment in request.segments}
    for change in request.generations:
        for member in change.members:
            found.setdefault(member.segment.id, member.segment)
    return tuple(found.values())


def owned_indexes(body: str | None) -> tuple[tuple[IndexId, bool], ...]:
    """The indexes of a published descriptor, including its future primary one, and whether they are public; none if it
    was dropped."""
    if body is None:
        return ()
    table = decode_descriptor(body)
    if not isinstance(table, Table):
        return ()
    return tuple((index.id, index.state is State.PUBLIC) for index in (*table.indexes, *table.coming))


def segment_values(segment: Segment, seq: int, delta: int | None) -> Row:
    stored = replace(segment, seq=Seq(seq))
    return (*(getattr(stored, field.name) for field in fields(stored)), delta)


def segment_from(row: Row) -> Segment:
    id_, index_id, layout_id, kind, seq, fresh, *rest = row
    return Segment(id_, index_id, layout_id, SegmentKind(kind), seq, bool(fresh), *rest)


def batch_from(row: Row) -> InlineBatch:
    return InlineBatch(IndexId(row[0]), LayoutId(row[1]), row[2], row[3], row[4])


def descriptor_from(row: Row) -> PublishedDescriptor:
    id_, version, body, checksum = row
    descriptor = _decode(id_, version, body, checksum) if body is not None else None
    return PublishedDescriptor(DescriptorId(id_), version, descriptor)


def descriptor_checksum(change: DescriptorChange) -> int:
    return _checksum(change.id, change.version, change.body or "")


def _checksum(id_: int, version: int, body: str) -> int:
    """Signed, as both back ends store integers."""
    return xxhash.xxh3_64_intdigest(f"{id_} {version} {body}".encode()) - (1 << 63)


def _decode(id_: int, version: int, body: str, checksum: int | None) -> Descriptor:
    """A descriptor without a checksum was written by an older program."""
    if checksum is not None and checksum != _checksum(id_, version, body):
        detail = "its checksum differs from the recorded one"
        raise errors.DescriptorDamaged(id=id_, version=version, detail=detail)
    try:
        return decode_descriptor(body)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as problem:
        raise errors.DescriptorDamaged(id=id_, version=version, detail=repr(problem)) from problem


def dropped_from(row: Row) -> DroppedDescriptor:
    id_, version, body, seq, last, checksum = row
    return DroppedDescriptor(DescriptorId(id_), version, _decode(id_, last, body, checksum), Seq(seq))


def node_from(row: Row) -> NodeRecord:
    epoch, name, live, *marks, latency_us, usual_us, answered = row
    values = (epoch, name, bool(live), *marks, Pace(latency_us, usual_us), answered)
    return NodeRecord(*values)


def write_asked(asked: AskedSession) -> str:
    return f" {asked.number}:{asked.request}"


def read_asked(text: str) -> tuple[AskedSession, ...]:
    """
    >>> read_asked(" 300001:cancel 300002:end")[1].request
    <SessionRequest.END: 'end'>
    """
    pairs = (each.split(":") for each in text.split())
    return tuple(AskedSession(int(number), SessionRequest(request)) for number, request in pairs)


def job_from(row: Row, numbers: Callable[[Any], tuple[int, ...]]) -> JobRecord:
    id_, revision, status, request, packed, *rest = row
    descriptors = tuple(map(DescriptorId, numbers(packed)))
    return JobRecord(id_, revision, JobStatus(status), JobRequest(request), descriptors, *rest)


def change_from(row: Row) -> PublishedChange:
    return PublishedChange(Seq(row[0]), row[1], CHANGE_CODEC.decode(row[2]))


def event_from(row: Row) -> Event:
    return Event(row[0], JobId(row[1]), Seq(row[2]), row[3])


def locked_from(key: int, guard: int | None) -> CommitBlocked:
    """The lock that a blocked commit must wait for. A lock without a guard blocks changes of any row of a table:
    commits that change some of them can wait for it concurrently."""
    if guard is None:
        return CommitBlocked(KeyHash(key), LockStrength.SHARE)
    strength = LockStrength.NO_KEY_UPDATE if guard == key else LockStrength.UPDATE
    return CommitBlocked(KeyHash(key), strength)


def table_locked_from(key: int) -> CommitBlocked:
    """A writer waits for the end of another transaction's lock on the table."""
    return CommitBlocked(KeyHash(key), TableLock.ROW_EXCLUSIVE)


def held_from(row: Row) -> LockHeld:
    key, epoch, actor, strength = row
    return LockHeld(KeyHash(key), Epoch(epoch), actor, lock_mode(strength))


def wait_from(row: Row) -> LockWait:
    turn, key, epoch, actor, strength = row
    return LockWait(turn, KeyHash(key), Epoch(epoch), actor, lock_mode(strength))


def queues_from(held: Iterable[Row], waits: Iterable[Row]) -> LockQueues:
    return LockQueues(tuple(map(held_from, held)), tuple(map(wait_from, waits)))


def generation_from(row: Row, member_rows: Iterable[Row]) -> Generation:
    """`row`: id, index, base, swap; a member row: the deleted positions, then the segment."""
    members = tuple(GenerationMember(segment_from(m[1:]), m[0]) for m in member_rows)
    return Generation(GenerationId(row[0]), IndexId(row[1]), base=Seq(row[2]), swap=Seq(row[3]), members=members)


def deltas_from(
    batches: Iterable[tuple[int, InlineBatch]], segments: Iterable[tuple[int, Segment]]
) -> tuple[IndexDelta, ...]:
    by_seq: dict[int, tuple[list[InlineBatch], list[Segment]]] = defaultdict(lambda: ([], []))
    for seq, batch in batches:
        by_seq[seq][0].append(batch)
    for seq, segment in segments:
        by_seq[seq][1].append(segment)
    return tuple(IndexDelta(Seq(seq), tuple(by_seq[seq][0]), tuple(by_seq[seq][1])) for seq in sorted(by_seq))


class EntryParts:
    """The parts of the entries of one read of the log, besides their key sets, by sequence."""

    def __init__(self) -> None:
        self.batches: Mapping[int, list[InlineBatch]] = {}
        self.segments: Mapping[int, list[Segment]] = {}
        self.descriptors: Mapping[int, list[PublishedDescriptor]] = {}
        self.generations: Mapping[int, list[Generation]] = {}

    def allow_forgotten(self) -> None:
        """Of the past, parts of indexes that were never public may be gone above the floor."""
        self.batches = defaultdict(list, self.batches)
        self.segments = defaultdict(list, self.segments)
        self.generations = defaultdict(list, self.generations)


def group(pairs: Iterable[tuple[int, T]]) -> dict[int, list[T]]:
    grouped: dict[int, list[T]] = {}
    for seq, value in pairs:
        grouped.setdefault(seq, []).append(value)
    return grouped


def entry_from(row: Row, numbers: Callable[[Any], tuple[int, ...]], parts: EntryParts) -> LogEntry:
    """`row`: seq, timestamp, commit id, writes, shares, bulk, touched, parts."""
    seq, timestamp_us, commit_id, writes, shares, bulk, touched, kinds = row
    return LogEntry(
        seq=Seq(seq),
        timestamp_us=timestamp_us,
        commit_id=CommitId(commit_id),
        writes=tuple(map(KeyHash, numbers(writes))),
        shares=tuple(map(KeyHash, numbers(shares))),
        bulk=tuple(map(IndexId, numbers(bulk))),
        touched=tuple(map(IndexId, numbers(touched))),
        batches=tuple(parts.batches[seq]) if kinds & BATCHES else (),
        segments=tuple(parts.segments[seq]) if kinds & SEGMENTS else (),
        descriptors=tuple(parts.descriptors[seq]) if kinds & DESCRIPTORS else (),
        generations=tuple(parts.generations[seq]) if kinds & GENERATIONS else (),
    )


def check_snapshot(epoch: Epoch, snapshot: int, row: Row | None) -> None:
    """`row`: the floor and whether the epoch is live, read after everything else."""
    floor, live = row if row is not None else (0, None)
    if not live:
        raise errors.StaleNode(node=epoch)
    if snapshot < floor:
        raise errors.SnapshotTooOld(snapshot=snapshot, detail=f"history starts at {floor}")


def newest_at(timestamp_us: int, low: int, high: int, timestamp_of: Callable[[int], int]) -> Seq:
    """The newest sequence of low..high whose timestamp is not after the given one (below `low` if none is).

    Timestamps increase with the sequence, so a binary search needs no index on them.
    """
    low -= 1
    while low < high:
        middle = (low + high + 1) // 2
        if timestamp_of(middle) <= timestamp_us:
            low = middle
        else:
            high = middle - 1
    return Seq(max(low, 0))
