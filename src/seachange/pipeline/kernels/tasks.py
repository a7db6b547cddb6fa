"""The tasks of a backfill: kernels with their inputs, as values that can be sent to another machine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import duckdb

from seachange.model.ids import ColumnId, IndexId
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column
from seachange.model.segments import Segment
from seachange.pipeline.kernels import merge
from seachange.pipeline.kernels.converted import missing_key
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.partition import PartitionOutput, partition_rows
from seachange.pipeline.kernels.reading import ReadsSource, WritesNothing
from seachange.pipeline.kernels.rebuild import computed_columns, draw_nothing, locate, resolve_defaults, select_computed
from seachange.pipeline.kernels.runs import BuiltIndex, EntrySum, Run, build_run
from seachange.pipeline.kernels.source import IndexSource, Unit
from seachange.pipeline.kernels.split_points import SplitPoints, choose_split_points
from seachange.storage.arrow import column_name
from seachange.storage.entries import columns_read
from seachange.storage.segment_footer import SEGMENT_BYTES_MAX, SEGMENT_ROWS_MAX
from seachange.storage.sorter import Sorter

# An estimate of how much larger rows are in memory, where segments are cut, than in files.
_UNPACKED = 4
_STORED, _COMPUTED, UNIT_ROWS = "stored_rows", "computed_rows", "unit_rows"


def segments_for(rows: int, size_bytes: int) -> int:
    """An estimate of how many segments this many rows from files of this size become.

    >>> segments_for(1_000_000, 10 << 20), segments_for(1_000, 100 << 20), segments_for(10, 100)
    (3, 4, 1)
    """
    return max(-(-rows // SEGMENT_ROWS_MAX), size_bytes * _UNPACKED // SEGMENT_BYTES_MAX + 1)


def entry_bytes(source: IndexSource, target: BuiltIndex) -> int:
    """An estimate of the size of an index's entries, assuming columns of equal size."""
    held = source.table.stored_columns(source.index, source.table.layout)
    return source.size_bytes * len(target.columns) // max(len(held), 1)


def work_bytes(source: IndexSource, targets: Sequence[BuiltIndex], known: Mapping[IndexId, int] | None = None) -> int:
    """An estimate of the bytes written until all indexes are built: sorted runs, and the merged result next to them.
    `known` are the sizes of indexes; of others that of all rows is taken."""
    sizes = known or {}
    return 2 * sum(sizes.get(target.index.id, entry_bytes(source, target)) for target in targets)


@dataclass(frozen=True, slots=True)
class ReadUnit:
    """`source` has only the unit's parts. Entries of a target without split points are sorted, those of the others
    partitioned. `lenient`: rows may be among them that have no value for a computed column, because a transaction
    has replaced or deleted them."""

    source: IndexSource
    unit: Unit
    targets: tuple[BuiltIndex, ...]
    split_points: tuple[SplitPoints | None, ...]
    lenient: bool = False

    @property
    def title(self) -> str:
        names = ", ".join(target.index.name for target in self.targets)
        return f"read {self.unit.rows} rows of {self.source.table.name} for {names}"

    @property
    def segments(self) -> int:
        size_bytes = sum(file.segment.size_bytes for file in self.unit.parts.files)
        sorted_here = sum(split_points is None for split_points in self.split_points)
        return segments_for(self.unit.rows, size_bytes) * sorted_here + len(self.split_points) - sorted_here

    @property
    def read_bytes(self) -> int:
        return self.source.size_bytes

    @property
    def write_bytes(self) -> int:
        return sum(entry_bytes(self.source, target) for target in self.targets)

    @property
    def steps(self) -> int:
        # Rows are read and partitioned in one query; or held, and then counted and sorted for each index.
        sorted_here = sum(split_points is None for split_points in self.split_points)
        return int(sorted_here < len(self.split_points)) + (1 + 2 * sorted_here if sorted_here else 0)

    def run(self, kernel_context: KernelContext) -> list[Run]:
        return read_unit(self.source, self.unit, self.targets, self.split_points, kernel_context, self.lenient)


@dataclass(frozen=True, slots=True)
class ChooseSplitPoints(ReadsSource):
    target: BuiltIndex
    ranges: int

    @property
    def title(self) -> str:
        return f"sample rows for split points of {self.target.index.name}"

    @property
    def read_bytes(self) -> int:
        # A few rows of each file.
        return 0

    def run(self, kernel_context: KernelContext) -> SplitPoints:
        return choose_split_points(self.source, self.target, self.ranges, kernel_context)


@dataclass(frozen=True, slots=True)
class SampleKeys(WritesNothing):
    target: BuiltIndex
    group: tuple[Segment, ...]
    step: int

    @property
    def title(self) -> str:
        return f"sample the keys of {self.target.index.name}"

    @property
    def read_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.group)

    def run(self, kernel_context: KernelContext) -> list[tuple[Any, ...]]:
        return merge.sample_keys(self.target, self.group, self.step, kernel_context)


class _SortsRange:
    """Entries of a range are read, sorted, written, and read back."""

    __slots__ = ()

    @property
    @abstractmethod
    def read_bytes(self) -> int: ...

    @property
    def write_bytes(self) -> int:
        return self.read_bytes

    @property
    def steps(self) -> int:
        return 2


@dataclass(frozen=True, slots=True)
class MergeRange(_SortsRange):
    target: BuiltIndex
    part: merge.KeyRange

    @property
    def title(self) -> str:
        return f"merge about {self.part.rows} entries of {self.target.index.name}"

    @property
    def segments(self) -> int:
        # The number of rows in a range is an estimate.
        return segments_for(self.part.rows, self.read_bytes) + 1

    @property
    def read_bytes(self) -> int:
        whole_rows = sum(s.rows for s in self.part.segments)
        return sum(s.size_bytes for s in self.part.segments) * self.part.rows // max(whole_rows, 1)

    def run(self, kernel_context: KernelContext) -> Run:
        # The writer of the runs has verified them, and the result is compared with the rows at the end.
        kernel_context.warehouse.remember(self.part.segments)
        return merge.merge_range(self.target, self.part, kernel_context)


@dataclass(frozen=True, slots=True)
class SortRange(_SortsRange):
    target: BuiltIndex
    part: merge.ShuffledRange

    @property
    def title(self) -> str:
        return f"sort {self.part.rows} entries of {self.target.index.name}"

    @property
    def segments(self) -> int:
        return segments_for(self.part.rows, self.read_bytes // _UNPACKED) + 1

    @property
    def read_bytes(self) -> int:
        whole_rows = sum(sum(file.counts) for file in self.part.files)
        return sum(file.size_bytes for file in self.part.files) * self.part.rows // max(whole_rows, 1)

    def run(self, kernel_context: KernelContext) -> Run:
        # The result is compared with the rows at the end.
        return merge.sort_range(self.target, self.part, kernel_context)


@dataclass(frozen=True, slots=True)
class TallySegments(WritesNothing):
    target: BuiltIndex
    written: tuple[Segment, ...]

    @property
    def title(self) -> str:
        return f"count {sum(s.rows for s in self.written)} entries of {self.target.index.name}"

    @property
    def read_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.written)

    def run(self, kernel_context: KernelContext) -> EntrySum:
        return merge.tally_segments(self.target, self.written, kernel_context)


def read_unit(
    source: IndexSource,
    unit: Unit,
    targets: Sequence[BuiltIndex],
    split_points: Sequence[SplitPoints | None],
    kernel_context: KernelContext,
    lenient: bool = False,
) -> list[Run]:
    """Entries of a target without split points are sorted here, those of the others partitioned."""
    outputs = [
        PartitionOutput(target, cut) for target, cut in zip(targets, split_points, strict=True) if cut is not None
    ]
    sorted_here = [target for target, cut in zip(targets, split_points, strict=True) if cut is None]
    with kernel_context.sorter() as sorter:
        if not sorted_here:
            rows = source.scan(_columns_read(targets), unit.parts, kernel_context.warehouse, "unit")
            return partition_rows(sorter, rows, outputs, kernel_context)
        hold_rows(sorter, source, unit, targets, kernel_context, lenient)
        runs = [build_run(sorter, UNIT_ROWS, target, kernel_context) for target in sorted_here]
        return [*runs, *(partition_rows(sorter, Scan(f"FROM {UNIT_ROWS}"), outputs, kernel_context) if outputs else ())]


def _columns_read(targets: Sequence[BuiltIndex]) -> list[Column]:
    found = (c for t in targets for c in columns_read(t.table, t.index, t.columns, filled=True))
    return list(dict.fromkeys(found))


def check_computed(source: IndexSource, targets: Sequence[BuiltIndex], kernel_context: KernelContext) -> None:
    """Raises the error of the first row that has no value for a computed column of the indexes."""
    source = replace(source, table=resolve_defaults(source.table, source.rows, draw_nothing))
    for unit in source.units():
        with kernel_context.sorter() as sorter:
            hold_rows(sorter, source, unit, targets, kernel_context)


def hold_rows(
    sorter: Sorter,
    source: IndexSource,
    unit: Unit,
    targets: Sequence[BuiltIndex],
    kernel_context: KernelContext,
    lenient: bool = False,
    computes: bool = False,
) -> None:
    """Makes `UNIT_ROWS`. Expressions are evaluated once, so that a volatile one has the same value in all indexes.
    `computes`: whatever the source, its rows have no values of new columns yet."""
    computes = computes or any(target.is_computed_from(source.index) for target in targets)
    first, generated = computed_columns(source.table) if computes else ((), ())
    read = _columns_read(targets)
    read += [source.table.column_by_id[c] for item in (*first, *generated) for c in item.inputs]
    if first or generated:
        read += [source.table.column_by_id[c] for c in source.table.primary.key] + list(source.table.visible_columns)
    columns = list(dict.fromkeys(read))
    scan = source.scan(columns, unit.parts, kernel_context.warehouse, "unit", unit.positions)
    steps = [step for step in (first, generated) if step]
    names = [*(_STORED, _COMPUTED)[: len(steps)], UNIT_ROWS]
    sorter.keep(names[0], scan.sql, scan)
    for step, (before, after) in zip(steps, pairwise(names), strict=True):
        try:
            sorter.keep(after, select_computed(before, columns, step, lenient))
        except duckdb.Error as problem:
            raise locate(sorter, before, source.table, step, problem, kernel_context.translate) from problem
        sorter.drop(before)
    needed = dict.fromkeys(c for target in targets for c in source.table.needed_for(target.index))
    if lenient:
        keys = needed | dict.fromkeys(c for target in targets if target.is_primary for c in target.index.key)
        _drop_without(sorter, keys)
    else:
        _check_keys(sorter, source, needed)


def _drop_without(sorter: Sorter, keys: Iterable[ColumnId]) -> None:
    """The transaction leaves no row without a key."""
    missing = " OR ".join(f"{column_name(c)} IS NULL" for c in keys)
    if missing:
        sorter.ask(f"DELETE FROM {UNIT_ROWS} WHERE {missing}")  # noqa: S608 - named by id


def _check_keys(sorter: Sorter, source: IndexSource, keys: Iterable[ColumnId]) -> None:
    """A row without a value for its new key, which other writers may write, would be lost."""
    for column_id in keys:
        empty = f"SELECT * FROM {UNIT_ROWS} WHERE {column_name(column_id)} IS NULL LIMIT 1"  # noqa: S608 - named by id
        if sorter.ask(empty):
            raise missing_key(sorter, empty, source.table, source.table.column_by_id[column_id])
