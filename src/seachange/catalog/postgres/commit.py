"""A batch of commits as one call of a server-side function.

**Invariant:** an unknown outcome after a lost connection is resolved by asking again with the same commit ids, which
the log answers as it did the first time; nothing is reported as refused that could still be committed.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import fields
from enum import IntEnum
from itertools import chain
from typing import Any

from seachange.catalog.postgres.arrays import Bigints
from seachange.catalog.postgres.connections import Connection
from seachange.catalog.rows import (
    Row,
    attached_segments,
    descriptor_checksum,
    has_changes,
    locked_from,
    owned_indexes,
    parts_of,
    table_locked_from,
)
from seachange.model import log
from seachange.model.ids import DescriptorId, Epoch, Seq

# The number of sequences per partition of inline batches.
PARTITION_SPAN = 50_000

# Stands for no checksum in `commit_batch`.
NO_CHECKSUM = 0

_COMMIT = """SELECT code, a, b, detail
    FROM seachange.commit_batch(%b, %b::bytea[], %b, %b, %b, %b::bytea[], %s::jsonb[], %b)"""
_OUTCOME = "SELECT seq, timestamp_us FROM seachange.outcome(%b)"


class Code(IntEnum):
    """The result codes of `commit_batch`."""

    COMMITTED = 0
    CONFLICT = 1
    REVALIDATE = 2
    FENCED = 3
    STALE_EPOCH = 4
    BELOW_FLOOR = 5
    SUPERSEDED = 6
    BURNED = 7
    LOCKED = 8
    TABLE_LOCKED = 9


def send_commit(db: Connection, epoch: Epoch, requests: Sequence[log.CommitRequest]) -> tuple[log.Outcome, ...]:
    positions, numbers, ends = Bigints(), Bigints(), Bigints()
    payloads: list[bytes] = []
    for request in requests:
        positions += (request.validated, request.oldest, parts_of(request), request.actor)
        for key_set in (request.writes, request.shares, request.bulk, request.touched):
            numbers += key_set
            ends.append(len(numbers))
        numbers += chain.from_iterable(request.versions)
        ends.append(len(numbers))
        for batch in request.batches:
            numbers += (batch.index_id, batch.layout_id, batch.rows, batch.checksum or NO_CHECKSUM)
            payloads.append(batch.payload)
        ends.append(len(numbers))
        numbers += request.reads
        ends.append(len(numbers))
    changes = [_changes(request) for request in requests]
    values = (
        epoch,
        [request.commit_id for request in requests],
        positions,
        numbers,
        ends,
        payloads,
        changes if any(changes) else None,
        PARTITION_SPAN,
    )
    rows = db.execute(_COMMIT, values, prepare=True, binary=True).fetchall()
    return tuple(map(outcome_from, requests, rows))


def outcome_from(request: log.CommitRequest, row: Row) -> log.Outcome:
    code, a, b, detail = row
    match Code(code):
        case Code.COMMITTED:
            return log.Committed(Seq(a), b)
        case Code.CONFLICT:
            return log.Conflict(Seq(a))
        case Code.REVALIDATE:
            return log.Revalidate(Seq(a))
        case Code.FENCED:
            return log.Fenced(DescriptorId(a), b)
        case Code.STALE_EPOCH:
            return log.StaleEpoch(Epoch(a))
        case Code.BELOW_FLOOR:
            return log.BelowFloor(Seq(a))
        case Code.SUPERSEDED:
            return log.Superseded(detail)
        case Code.BURNED:
            return log.Burned(request.commit_id)
        case Code.LOCKED:
            return locked_from(a, b)
        case Code.TABLE_LOCKED:
            return table_locked_from(a)


def send_outcome(db: Connection, commit_id: bytes) -> log.Committed | None:
    row = db.execute(_OUTCOME, (commit_id,), binary=True).fetchone()
    return log.Committed(Seq(row[0]), row[1]) if row else None


def _changes(request: log.CommitRequest) -> str | None:
    """The rarely used part of a request, as JSON without empty lists; None if all are empty."""
    if not has_changes(request) and not request.scopes:
        return None
    deltas = {segment.id for segment in request.segments}
    bases = {m.segment.id: c.base for c in request.generations for m in c.members}
    changes: dict[str, Sequence[Any] | str] = {
        "descriptors": [
            {**_plain(change), "checksum": descriptor_checksum(change), "indexes": owned_indexes(change.body)}
            for change in request.descriptors
        ],
        "raises": request.raises,
        "segments": [
            {**_plain(segment), "delta": segment.id in deltas, "base": bases.get(segment.id)}
            for segment in attached_segments(request)
        ],
        "generations": [{**_plain(change), "members": _members(change)} for change in request.generations],
        "jobs": request.jobs,
        "violations": request.violations,
        "scopes": request.scopes,
        "change": request.change,
    }
    return json.dumps({name: each for name, each in changes.items() if each}, default=_plain)


def _members(change: log.GenerationChange) -> list[dict[str, Any]]:
    return [
        {"ordinal": n, "segment_id": member.segment.id, "deleted": member.deleted}
        for n, member in enumerate(change.members)
    ]


def _plain(value: Any) -> Any:
    """What JSON has no form for: bytes, and the values of the model."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return {field.name: getattr(value, field.name) for field in fields(value)}
