"""Segments, generations and inline batches: the parts of an index, as the catalog records them.

**Invariant:** a data segment holds only PUTs, all visible from one sequence; what it supersedes elsewhere follows from
its keys (unless `fresh`, when it supersedes nothing). A tombstone segment holds only entry keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from seachange.model.ids import GenerationId, IndexId, LayoutId, SegmentId, Seq


class SegmentKind(IntEnum):
    DATA = 1
    TOMBSTONES = 2


class Op(IntEnum):
    """What a row of an inline batch does to its entry. INSERT promises that no version was visible before it."""

    TOMBSTONE = 0
    PUT = 1
    INSERT = 2


@dataclass(frozen=True, slots=True)
class Segment:
    """A Parquet file. `seq` is the commit that attached it (for a base segment, the base of its generation);
    `key_min` and `key_max` are order-preserving encodings of its first and last entry key."""

    id: SegmentId
    index_id: IndexId
    layout_id: LayoutId
    kind: SegmentKind
    seq: Seq
    fresh: bool
    rows: int
    size_bytes: int
    checksum: bytes
    key_min: bytes
    key_max: bytes


@dataclass(frozen=True, slots=True)
class InlineBatch:
    """Rows of one index in one layout, as one Arrow record batch without its schema (see storage.batches). `checksum`
    covers all of it; None if an old release wrote it."""

    index_id: IndexId
    layout_id: LayoutId
    rows: int
    payload: bytes
    checksum: int | None


@dataclass(frozen=True, slots=True)
class GenerationMember:
    """A base segment of a generation; `deleted` are the row positions that the generation no longer shows,
    as ascending little-endian uint32."""

    segment: Segment
    deleted: bytes = b""


@dataclass(frozen=True, slots=True)
class Generation:
    """Everything of an index up to and including sequence `base`; `swap` is the sequence that published it."""

    id: GenerationId
    index_id: IndexId
    base: Seq
    swap: Seq
    members: tuple[GenerationMember, ...]


@dataclass(frozen=True, slots=True)
class IndexDelta:
    """What one commit did to one index: inline rows, file segments, or both."""

    seq: Seq
    batches: tuple[InlineBatch, ...]
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class IndexContents:
    """The contents of one index at a snapshot: a generation (None before the first) and the deltas above its base."""

    index_id: IndexId
    upto: Seq
    generation: Generation | None
    deltas: tuple[IndexDelta, ...]


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file that a commit refers to, as the catalog recorded it."""

    id: SegmentId
    size_bytes: int
    checksum: bytes


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """Every file that a catalog knows of: those that commits refer to, ordered by id; those of live writers and of
    jobs; and unreferenced ones, which garbage collection is going to delete."""

    attached: tuple[AttachedFile, ...]
    in_use: frozenset[SegmentId]
    garbage: frozenset[SegmentId]


@dataclass(frozen=True, slots=True)
class Holdings:
    """Numbers of files that a catalog refers to: its segments; those of them that only history needs; and unneeded
    files, which are going to be deleted."""

    segments: int
    bytes: int
    superseded: int
    garbage: int
