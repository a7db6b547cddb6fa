"""Merging runs into the base segments of a generation, one key range at a time.

Sorted runs that share keys with no other are base segments already: rows that are rewritten in the order of their
source are written once. The others are split into ranges by values of the first key column, and each range is sorted by
itself. Entries that were partitioned into ranges before are sorted range by range.

**Invariant:** the segments of a generation do not overlap, and their contents are determined by the names of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import xxhash

from seachange.model.scan import Scan
from seachange.model.segments import Segment
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.runs import BuiltIndex, EntrySum, Run, tally_of
from seachange.storage.arrow import column_name, schema_of
from seachange.storage.keys import AFTER, KeyCodec
from seachange.storage.segment_footer import SEGMENT_ROWS_MAX
from seachange.storage.segment_writer import SegmentShape
from seachange.storage.shuffle_file import ShuffleFile, read_range
from seachange.storage.sorter import Sorter
from seachange.values.types import ENCODED_AS_GIVEN

RANGE_ROWS_MAX = 4 * SEGMENT_ROWS_MAX
# One row in this many is sampled for the key distribution.
_SAMPLE_STEP = 4_096
_SHUFFLED = "dealt_entries"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Entries whose first key column is at or above `low` (None: no lower bound) and below `high`; without `high`, up
    to the end, including NULLs, which sort last. `rows` is an estimate."""

    segments: tuple[Segment, ...]
    low: Any
    high: Any
    rows: int

    def name(self, target: BuiltIndex) -> str:
        text = repr((target.index.id, [s.id for s in self.segments], self.low, self.high))
        return f"merged-{xxhash.xxh3_64_hexdigest(text.encode())}"


def clusters(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Groups of segments whose key ranges overlap, in key order."""
    groups: list[list[Segment]] = []
    highest = b""
    for segment in sorted(segments, key=lambda s: (s.key_min, s.id)):
        if groups and segment.key_min <= highest:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            highest = b""
        highest = max(highest, segment.key_max)
    return groups


def sample_step(rows_max: int) -> int:
    return max(min(_SAMPLE_STEP, rows_max // 4), 1)


def plan_merge(runs: Sequence[Run]) -> tuple[list[Segment], list[list[Segment]]]:
    """The segments that stay as they are, and the groups that are merged."""
    kept: list[Segment] = []
    groups: list[list[Segment]] = []
    for group in clusters(segment for run in runs for segment in run.segments):
        if len(group) == 1:
            kept += group
        else:
            groups.append(group)
    return kept, groups


def is_small(group: Sequence[Segment], rows_max: int) -> bool:
    return sum(segment.rows for segment in group) <= rows_max


def whole_range(group: Sequence[Segment]) -> KeyRange:
    return KeyRange(tuple(group), None, None, sum(segment.rows for segment in group))


def sample_keys(
    target: BuiltIndex, group: Sequence[Segment], step: int, kernel_context: KernelContext
) -> list[tuple[Any, ...]]:
    """Sampled values of the first key column in order, each with its count."""
    name = column_name(target.index.key[0])
    sql = (
        f"SELECT {name}, count(*) FROM read_parquet($files) "  # noqa: S608 - named by id
        f"WHERE file_row_number % {step} = 0 AND {name} IS NOT NULL GROUP BY {name} ORDER BY {name}"
    )
    with kernel_context.sorter() as sorter:
        return sorter.fetch(sql, Scan(sql, {"files": kernel_context.warehouse.paths(group)}))


def cut_ranges(
    target: BuiltIndex, group: Sequence[Segment], samples: Iterable[tuple[Any, ...]], step: int, rows_max: int
) -> list[KeyRange]:
    """The ranges, each with the segments that can have keys in it. Opening all segments for each range would take
    quadratic time."""
    cuts = cut_points(samples, step, rows_max)
    return [KeyRange(tuple(within(target, group, low, high)), low, high, rows) for low, high, rows in cuts]


def within(target: BuiltIndex, group: Sequence[Segment], low: Any, high: Any) -> list[Segment]:
    """Segments that can have keys in the range, by their least and greatest keys."""
    first = target.table.column_by_id[target.index.key[0]].type
    # For other types, DuckDB's Python value is not the one that keys are encoded from.
    if first.kind not in ENCODED_AS_GIVEN:
        return list(group)
    codec = KeyCodec([first])
    lowest = b"" if low is None else codec.encode((low,))
    after = AFTER if high is None else codec.encode((high,))
    # The encoded first value is a prefix of the keys with that value, and sorts before them.
    return [segment for segment in group if segment.key_max >= lowest and segment.key_min < after]


def cut_points(samples: Iterable[tuple[Any, ...]], step: int, rows_max: int) -> list[tuple[Any, Any, int]]:
    """Ranges of about `rows_max` rows, from sampled values in order with their counts; each sample stands for `step`
    rows. All rows with one value are in one range, however many they are.

    >>> cut_points([("a", 1), ("b", 3), ("c", 1)], 10, 20)
    [(None, 'b', 10), ('b', 'c', 30), ('c', None, 10)]
    """
    ranges: list[tuple[Any, Any, int]] = []
    low, rows = None, 0
    for value, count in samples:
        if rows and rows + count * step > rows_max:
            ranges.append((low, value, rows))
            low, rows = value, 0
        rows += count * step
    return [*ranges, (low, None, max(rows, 1))]


def merge_range(target: BuiltIndex, part: KeyRange, kernel_context: KernelContext) -> Run:
    """Sorts one range into segments; the tally is computed by reading them back."""
    first = target.table.column_by_id[target.index.key[0]]
    name, type_ = column_name(first.id), first.type.duckdb
    parameters: dict[str, object] = {"files": kernel_context.warehouse.paths(part.segments)}
    conditions = []
    if part.high is not None:
        conditions.append(f"{name} < CAST($high AS {type_})")
        parameters["high"] = _parameter(part.high)
    if part.low is not None:
        # NULL sorts last.
        beyond = f" OR {name} IS NULL" if part.high is None else ""
        conditions.append(f"({name} >= CAST($low AS {type_}){beyond})")
        parameters["low"] = _parameter(part.low)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    names = ", ".join(column_name(c) for c, _ in target.shape.columns)
    sql = f"SELECT {names} FROM read_parquet($files){where}"  # noqa: S608 - named by id
    with kernel_context.sorter() as sorter:
        segments = sorter.sort_query(sql, parameters, _even(target, part.rows), target.distinct)
        kernel_context.warehouse.remember(segments)
        return Run(target.index.id, _read_back(sorter, target, segments, kernel_context), tuple(segments))


@dataclass(frozen=True, slots=True)
class ShuffledRange:
    """One of the ranges that the entries in these shuffle files were partitioned into."""

    files: tuple[ShuffleFile, ...]
    number: int

    @property
    def rows(self) -> int:
        return sum(file.counts[self.number] for file in self.files)

    def name(self, target: BuiltIndex) -> str:
        text = repr((target.index.id, [file.id for file in self.files], self.number))
        return f"sorted-{xxhash.xxh3_64_hexdigest(text.encode())}"


def shuffled_ranges(runs: Sequence[Run]) -> list[ShuffledRange]:
    """The non-empty ranges. All runs were partitioned by the same split points."""
    files = tuple(sorted((run.shuffle_file for run in runs if run.shuffle_file is not None), key=lambda file: file.id))
    ranges = [ShuffledRange(files, number) for number in range(len(files[0].counts))] if files else []
    return [part for part in ranges if part.rows]


def sort_range(target: BuiltIndex, part: ShuffledRange, kernel_context: KernelContext) -> Run:
    """Sorts one range into segments; the tally is computed by reading them back."""
    files = kernel_context.warehouse.files
    batches = (batch for file in part.files for batch in read_range(files, file, part.number))
    with kernel_context.sorter() as sorter:
        # DuckDB sorts a table of its own in two thirds of the time that it needs for a stream, and can spill it.
        sorter.hold(_SHUFFLED, pa.RecordBatchReader.from_batches(schema_of(target.shape.columns), batches))
        segments = sorter.sort_query(f"FROM {_SHUFFLED}", {}, _even(target, part.rows), target.distinct)
        sorter.drop(_SHUFFLED)
        kernel_context.warehouse.remember(segments)
        return Run(target.index.id, _read_back(sorter, target, segments, kernel_context), tuple(segments))


def _parameter(value: Any) -> object:
    """DuckDB accepts timestamps with time zone from Python only as text."""
    return value.isoformat() if isinstance(value, datetime) else value


def _even(target: BuiltIndex, rows: int) -> SegmentShape:
    """Segments of equal size, rather than a small one at the end of each range."""
    shape = target.shape
    count = -(-rows // shape.rows_max)
    # The number of rows is an estimate; slightly more than expected should not make another file.
    return replace(shape, rows_max=min(shape.rows_max, int(rows / count * 1.1) + 1))


def total(runs: Iterable[Run]) -> EntrySum:
    return sum((run.tally for run in runs), EntrySum(0, 0))


def tally_segments(target: BuiltIndex, segments: Sequence[Segment], kernel_context: KernelContext) -> EntrySum:
    """The tally of segments, read back from the files."""
    with kernel_context.sorter() as sorter:
        return _read_back(sorter, target, segments, kernel_context)


def _read_back(
    sorter: Sorter, target: BuiltIndex, segments: Sequence[Segment], kernel_context: KernelContext
) -> EntrySum:
    if not segments:
        return EntrySum(0, 0)
    names = ", ".join(column_name(c) for c, _ in target.shape.columns)
    sql = f"SELECT {names} FROM read_parquet($files)"  # noqa: S608 - named by id
    return tally_of(sorter, target, Scan(sql, {"files": kernel_context.warehouse.paths(segments)}))
