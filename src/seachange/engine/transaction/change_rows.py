"""The rows of `seachange.changes`.

**Invariant:** a role sees the changes that it has made, and those of objects on which it has any privilege.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from seachange import errors
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.change_history import ChangeRecord, ChangeWork, PublishedChange
from seachange.model.ids import IndexId, Seq
from seachange.model.schema.actor import Actor

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def change_rows(parts: NodeParts, epoch: EpochState, database: str, actor: Actor) -> Iterator[tuple[Any, ...]]:
    floor = parts.catalog.floor()
    for change in parts.catalog.changes():
        record = change.record
        if record.planned[0].database == database and _may_see(record, epoch, actor):
            first, undo = record.planned[0], _undo(change, parts, epoch, floor)
            objects = ", ".join(_describe(o.what, o.before, o.after) for o in record.objects)
            jobs = ", ".join(map(str, record.jobs)) or None
            times = (_moment(first.began_us), _moment(change.timestamp_us))
            facts = (change.id, record.statement, first.role, objects, *times, jobs, record.strategy)
            yield (*facts, *_works(record.estimate, change.done), *undo)


def _may_see(record: ChangeRecord, epoch: EpochState, actor: Actor) -> bool:
    if actor.superuser or actor.user == record.planned[0].role:
        return True
    found = (epoch.schemas.newest.find(changed.id) for changed in record.objects)
    return any(descriptor is not None and actor.holds_any(descriptor.access) for descriptor in found)


def _describe(what: str, before: int, after: int) -> str:
    if not before:
        return f"{what} (created)"
    return f"{what} {before} -> {after}" if after else f"{what} (dropped)"


def _works(estimate: ChangeWork, done: ChangeWork) -> tuple[int | None, ...]:
    rows, sizes = (estimate.rows, done.rows), (estimate.written_bytes, done.written_bytes)
    times = (_ms(estimate.duration_us), _ms(done.duration_us))
    return (*rows, *sizes, *times, estimate.drains, done.drains, _ms(done.drained_us))


def _undo(change: PublishedChange, parts: NodeParts, epoch: EpochState, floor: Seq) -> tuple[dt.datetime | None, int]:
    """Until when what was there before is kept, and the size of what only history refers to."""
    if change.id <= floor:
        return None, 0
    gone = [index_id for changed in change.record.objects for index_id in changed.lost_indexes]
    kept = sum(_bytes(index_id, Seq(change.id - 1), parts, epoch) for index_id in gone)
    return _moment(change.timestamp_us + parts.retention.us), kept


def _bytes(index_id: IndexId, at: Seq, parts: NodeParts, epoch: EpochState) -> int:
    try:
        contents = parts.catalog.index_contents(epoch.epoch, index_id, at)
    except errors.SnapshotTooOld:
        return 0
    members = contents.generation.members if contents.generation is not None else ()
    files = [member.segment.size_bytes for member in members]
    files += [segment.size_bytes for delta in contents.deltas for segment in delta.segments]
    return sum(files) + sum(len(batch.payload) for delta in contents.deltas for batch in delta.batches)


def _ms(duration_us: int | None) -> int | None:
    return None if duration_us is None else duration_us // 1_000


def _moment(timestamp_us: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=timestamp_us)
