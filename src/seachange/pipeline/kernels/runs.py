"""The output of a unit for one index: a sorted run, or entries that are yet to be sorted.

**Invariant:** the sum of the hashes of entries, and their number, are taken from the rows, not from what was written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seachange import errors
from seachange.model.ids import IndexId, LayoutId, SegmentId, Seq
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.segments import Segment, SegmentKind
from seachange.model.states import State
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.row_names import show_key
from seachange.storage.arrow import column_name
from seachange.storage.bulk import Distinct
from seachange.storage.entries import columns_read, select_entries
from seachange.storage.segment_footer import ROW_GROUP_ROWS, SECONDARY_ROW_GROUP_ROWS
from seachange.storage.segment_writer import SegmentShape
from seachange.storage.shuffle_file import ShuffleFile
from seachange.storage.sorter import Sorter


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index to build; `table` has the primary index whose key the entries end with."""

    table: Table
    index: Index

    @property
    def is_primary(self) -> bool:
        return self.index.id == self.table.primary.id

    def is_computed_from(self, source: Index) -> bool:
        """Whether entries contain values that the rows of the current primary index do not have, because they are
        computed for a new primary index."""
        if self.is_primary or source.state is not State.PUBLIC:
            return self.is_primary
        read = columns_read(self.table, self.index, self.columns, filled=True)
        return any(column.conversion is not None for column in read)

    @property
    def shape(self) -> SegmentShape:
        return base_shape(self.table, self.index)

    @property
    def columns(self) -> list[Column]:
        return [self.table.column_by_id[c] for c, _ in self.shape.columns]

    @property
    def distinct(self) -> Distinct | None:
        """A new primary key has been validated before; it is checked again, since a duplicate would lose a row."""
        if not self.is_primary:
            return None
        key = [self.table.column_by_id[c] for c in self.index.key]
        return Distinct(
            self.index.key,
            lambda values: errors.UniqueViolation(constraint=self.index.name, key=f"key {show_key(key, values)}"),
        )


@dataclass(frozen=True, slots=True)
class EntrySum:
    """The number of entries and the sum of their hashes; independent of their order."""

    entries: int
    hashes: int

    def __add__(self, other: EntrySum) -> EntrySum:
        return EntrySum(self.entries + other.entries, self.hashes + other.hashes)


@dataclass(frozen=True, slots=True)
class Run:
    """The output of a unit for one index: sorted segments, or a shuffle file of unsorted entries; and the tally of the
    rows that it was computed from."""

    index_id: IndexId
    tally: EntrySum
    segments: tuple[Segment, ...]
    shuffle_file: ShuffleFile | None = None

    @property
    def files(self) -> tuple[SegmentId, ...]:
        return (*(s.id for s in self.segments), *(() if self.shuffle_file is None else (self.shuffle_file.id,)))


def encode_runs(runs: Sequence[Run]) -> str:
    return json.dumps(
        [
            [
                r.index_id,
                r.tally.entries,
                str(r.tally.hashes),
                [_encode_segment(s) for s in r.segments],
                None if r.shuffle_file is None else _encode_shuffle_file(r.shuffle_file),
            ]
            for r in runs
        ],
        separators=(",", ":"),
    )


def decode_runs(text: str) -> tuple[Run, ...]:
    return tuple(
        Run(
            IndexId(index_id),
            EntrySum(entries, int(hashes)),
            tuple(map(_decode_segment, segments)),
            None if shuffle_file is None else _decode_shuffle_file(shuffle_file),
        )
        for index_id, entries, hashes, segments, shuffle_file in json.loads(text)
    )


def _encode_segment(s: Segment) -> list[object]:
    return [s.id, s.index_id, s.layout_id, s.rows, s.size_bytes, s.checksum.hex(), s.key_min.hex(), s.key_max.hex()]


def _decode_segment(body: list[Any]) -> Segment:
    id_, index_id, layout_id, rows, size, checksum, low, high = body
    return Segment(
        SegmentId(id_),
        IndexId(index_id),
        LayoutId(layout_id),
        SegmentKind.DATA,
        Seq(0),
        True,
        rows,
        size,
        *(bytes.fromhex(part) for part in (checksum, low, high)),
    )


def _encode_shuffle_file(file: ShuffleFile) -> list[object]:
    return [file.id, file.size_bytes, file.checksum.hex(), list(file.counts)]


def _decode_shuffle_file(body: list[Any]) -> ShuffleFile:
    id_, size, checksum, counts = body
    return ShuffleFile(SegmentId(id_), size, bytes.fromhex(checksum), tuple(counts))


def hash_sql(target: BuiltIndex) -> str:
    """The hash of an entry, from its columns as stored or as computed."""
    return f"hash({', '.join(f'CAST({column_name(c.id)} AS {c.type.duckdb})' for c in target.columns)})"


def tally_of(sorter: Sorter, target: BuiltIndex, scan: Scan) -> EntrySum:
    """The tally of a query that selects the stored columns of the index."""
    sql = f"SELECT count(*), sum({hash_sql(target)}) FROM ({scan.sql})"  # noqa: S608 - named by id
    ((entries, hashes),) = sorter.ask(sql, scan)
    return EntrySum(int(entries), int(hashes or 0))


def build_run(sorter: Sorter, rows: str, target: BuiltIndex, kernel_context: KernelContext) -> Run:
    """`rows` is a table with the columns that the entries are computed from, by their ids."""
    entries = select_entries(target.table, target.index, rows, filled=True)
    tally = tally_of(sorter, target, Scan(entries))
    segments = sorter.sort_query(entries, {}, target.shape, target.distinct) if tally.entries else []
    kernel_context.warehouse.remember(segments)
    return Run(target.index.id, tally, tuple(segments))


def base_shape(table: Table, index: Index) -> SegmentShape:
    """Segments of a generation, in the current layout."""
    return SegmentShape(
        columns=table.stored_columns(index, table.layout),
        key=table.entry_key(index),
        index_id=index.id,
        layout_id=table.layout.id,
        kind=SegmentKind.DATA,
        fresh=True,
        row_group_rows=ROW_GROUP_ROWS if index.id == table.primary.id else SECONDARY_ROW_GROUP_ROWS,
        compression=table.compression,
    )
