"""The tasks of a backfill: kernels with their inputs, as values that can be sent to another machine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seachange.model.segments import Segment
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.merge import DealtRange, KeyRange, merge_range, sample_keys, sort_range, tally_segments
from seachange.pipeline.kernels.reading import ReadsSource, WritesNothing
from seachange.pipeline.kernels.runs import BuiltIndex, EntrySum, Run
from seachange.pipeline.kernels.source import IndexSource, Unit
from seachange.pipeline.kernels.split_points import SplitPoints, choose_cuts
from seachange.pipeline.kernels.unit import read_unit
from seachange.storage.segment_footer import SEGMENT_BYTES_MAX, SEGMENT_ROWS_MAX

# About how many times as large rows are in memory, where segments are cut, as in files.
_UNPACKED = 4


def segments_for(rows: int, size_bytes: int) -> int:
    """About how many files so many rows become, of files of so many bytes.

    >>> segments_for(1_000_000, 10 << 20), segments_for(1_000, 100 << 20), segments_for(10, 100)
    (3, 4, 1)
    """
    return max(-(-rows // SEGMENT_ROWS_MAX), size_bytes * _UNPACKED // SEGMENT_BYTES_MAX + 1)


def entry_bytes(source: IndexSource, target: BuiltIndex) -> int:
    """About how much the entries of an index take: what its columns are of all, as if all were alike."""
    held = source.table.stored_columns(source.index, source.table.layout)
    return source.size_bytes * len(target.columns) // max(len(held), 1)


def work_bytes(source: IndexSource, targets: Sequence[BuiltIndex]) -> int:
    """About how much is written until all is built: sorted runs, and what is merged of them, side by side. Of how many
    rows a partial index has entries is not known: nothing is refused because of one."""
    return 2 * sum(entry_bytes(source, target) for target in targets if target.index.where is None)


@dataclass(frozen=True, slots=True)
class ReadUnit:
    """`source` has no parts but the unit's. Entries of a target without cuts are sorted, those of the others dealt."""

    source: IndexSource
    unit: Unit
    targets: tuple[BuiltIndex, ...]
    cuts: tuple[SplitPoints | None, ...]

    @property
    def title(self) -> str:
        names = ", ".join(target.index.name for target in self.targets)
        return f"read {self.unit.rows} rows of {self.source.table.name} for {names}"

    @property
    def segments(self) -> int:
        size_bytes = sum(file.segment.size_bytes for file in self.unit.parts.files)
        sorted_here = sum(cuts is None for cuts in self.cuts)
        return segments_for(self.unit.rows, size_bytes) * sorted_here + len(self.cuts) - sorted_here

    @property
    def read_bytes(self) -> int:
        return self.source.size_bytes

    @property
    def write_bytes(self) -> int:
        return sum(entry_bytes(self.source, target) for target in self.targets)

    @property
    def steps(self) -> int:
        # Rows are read and dealt at once; or held, and counted and sorted for each index.
        sorted_here = sum(cuts is None for cuts in self.cuts)
        return int(sorted_here < len(self.cuts)) + (1 + 2 * sorted_here if sorted_here else 0)

    def run(self, kernel_context: KernelContext) -> list[Run]:
        return read_unit(self.source, self.unit, self.targets, self.cuts, kernel_context)


@dataclass(frozen=True, slots=True)
class ChooseSplitPoints(ReadsSource):
    target: BuiltIndex
    ranges: int

    @property
    def title(self) -> str:
        return f"look at keys of {self.target.index.name}"

    @property
    def read_bytes(self) -> int:
        # A few rows of each file.
        return 0

    def run(self, kernel_context: KernelContext) -> SplitPoints:
        return choose_cuts(self.source, self.target, self.ranges, kernel_context)


@dataclass(frozen=True, slots=True)
class SampleKeys(WritesNothing):
    target: BuiltIndex
    group: tuple[Segment, ...]
    step: int

    @property
    def title(self) -> str:
        return f"look at the keys of {self.target.index.name}"

    @property
    def read_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.group)

    def run(self, kernel_context: KernelContext) -> list[tuple[Any, ...]]:
        return sample_keys(self.target, self.group, self.step, kernel_context)


class _SortsRange:
    """Entries of a range are read, sorted and written, and read back."""

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
    part: KeyRange

    @property
    def title(self) -> str:
        return f"merge about {self.part.rows} entries of {self.target.index.name}"

    @property
    def segments(self) -> int:
        # What a range has is known about.
        return segments_for(self.part.rows, self.read_bytes) + 1

    @property
    def read_bytes(self) -> int:
        whole_rows = sum(s.rows for s in self.part.segments)
        return sum(s.size_bytes for s in self.part.segments) * self.part.rows // max(whole_rows, 1)

    def run(self, kernel_context: KernelContext) -> Run:
        # Whoever wrote the runs has read them back, and what comes of them is compared with the rows in the end.
        kernel_context.warehouse.remember(self.part.segments)
        return merge_range(self.target, self.part, kernel_context)


@dataclass(frozen=True, slots=True)
class SortRange(_SortsRange):
    target: BuiltIndex
    part: DealtRange

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
        # What comes of the files is compared with the rows in the end.
        return sort_range(self.target, self.part, kernel_context)


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
        return tally_segments(self.target, self.written, kernel_context)
