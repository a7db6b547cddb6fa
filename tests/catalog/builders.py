"""Short ways to say what a commit asks for."""

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from seachange.catalog.port import Catalog
from seachange.model.codecs.descriptor_json import encode_table
from seachange.model.ids import (
    ColumnId,
    CommitId,
    DescriptorId,
    Epoch,
    GenerationId,
    IndexId,
    KeyHash,
    LayoutId,
    SegmentId,
    Seq,
)
from seachange.model.log import (
    CommitRequest,
    Committed,
    DescriptorChange,
    GenerationChange,
    Outcome,
    VersionRaise,
)
from seachange.model.schema.descriptor import Column, Index, Layout, Table
from seachange.model.segments import GenerationMember, InlineBatch, Segment, SegmentKind
from seachange.storage.batches import seal_batch
from seachange.values.types import BIGINT

LONG_MS = 3_600_000


def register(catalog: Catalog) -> Epoch:
    return catalog.register_node("node", LONG_MS)


def request(at: int, **fields: Any) -> CommitRequest:
    """A request whose writes and shares are plain numbers, validated up to `at`."""
    for name in ("writes", "shares"):
        fields[name] = tuple(KeyHash(number) for number in fields.get(name, ()))
    for name in ("bulk", "touched"):
        fields[name] = tuple(IndexId(number) for number in fields.get(name, ()))
    fields.setdefault("oldest", Seq(at))
    return CommitRequest(commit_id=new_id(), validated=Seq(at), **fields)


def new_id() -> CommitId:
    return CommitId(os.urandom(16))


def submit(catalog: Catalog, epoch: Epoch, what: CommitRequest) -> Outcome:
    (outcome,) = catalog.commit(epoch, (what,))
    return outcome


def accept(catalog: Catalog, epoch: Epoch, **fields: Any) -> Committed:
    """Commits at the head; fails the test if it is refused."""
    outcome = submit(catalog, epoch, request(catalog.head(), **fields))
    assert isinstance(outcome, Committed)
    return outcome


def batch(index_id: int = 1, payload: bytes = b"rows") -> InlineBatch:
    return seal_batch(IndexId(index_id), LayoutId(1), 1, payload)


def segment(id_: int, index_id: int = 1) -> Segment:
    return Segment(
        id=SegmentId(id_),
        index_id=IndexId(index_id),
        layout_id=LayoutId(1),
        kind=SegmentKind.DATA,
        seq=Seq(0),
        fresh=True,
        rows=10,
        size_bytes=1_000,
        checksum=b"\x00\xff",
        key_min=b"a",
        key_max=b"z",
    )


def swap(index_id: int, expected: int | None, base: int | None, segments: Iterable[Segment] = ()) -> GenerationChange:
    return GenerationChange(
        IndexId(index_id),
        GenerationId(expected) if expected is not None else None,
        Seq(base) if base is not None else None,
        tuple(GenerationMember(one, b"\x01\x00\x00\x00") for one in segments),
    )


def table(id_: int, version: int, name: str = "t", indexes: tuple[int, ...] = ()) -> Table:
    key = (ColumnId(1),)
    # Index ids come from the same space as descriptor ids, and are never shared.
    made = [Index(IndexId(i), f"index_{i}", key) for i in indexes or (1_000 + id_,)]
    return Table(
        id=DescriptorId(id_),
        version=version,
        schema="public",
        name=name,
        columns=(Column(ColumnId(1), "a", BIGINT),),
        primary=replace(made[0], unique=True),
        secondary=tuple(made[1:]),
        layouts=(Layout(LayoutId(1), ((ColumnId(1), BIGINT),)),),
        next_column_id=ColumnId(2),
    )


def publish(id_: int, expected: int, version: int, name: str = "t", indexes: tuple[int, ...] = ()) -> DescriptorChange:
    body = encode_table(table(id_, version, name, indexes))
    return DescriptorChange(DescriptorId(id_), expected, version, name, body)


def drop(id_: int, expected: int, version: int, name: str = "t") -> DescriptorChange:
    return DescriptorChange(DescriptorId(id_), expected, version, name, None)


def raise_to(id_: int, version: int) -> VersionRaise:
    return VersionRaise(DescriptorId(id_), version)


def uses(id_: int, version: int) -> tuple[tuple[DescriptorId, int], ...]:
    return ((DescriptorId(id_), version),)
