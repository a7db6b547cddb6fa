"""Split points: the boundaries of the key ranges of an index, chosen from a sample of the rows before any is sorted.

**Invariant:** the split points of the same rows are the same in every attempt. They only affect how even the ranges
are, never what is in the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from seachange.model.scan import Scan
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.runs import BuiltIndex
from seachange.pipeline.kernels.source import IndexSource
from seachange.storage.arrow import column_name
from seachange.storage.bulk import stored_output
from seachange.storage.entries import columns_read, select_entries
from seachange.storage.image import SnapshotParts
from seachange.storage.plan import plan_columns
from seachange.storage.segment_footer import ROW_GROUP_ROWS
from seachange.storage.sorter import Sorter
from seachange.values.types import Kind

# The sample: the first rows of every fourth row group, in some files that are evenly spread over the source.
_FILES_MAX = 64
_SAMPLED = f"file_row_number % {4 * ROW_GROUP_ROWS} < 256"


@dataclass(frozen=True, slots=True)
class SplitPoints:
    """Stored values of the first key column, in order: each begins another range. NULL is in the last one."""

    values: tuple[Any, ...]

    @property
    def ranges(self) -> int:
        return len(self.values) + 1


def place_sql(target: BuiltIndex, split_points: SplitPoints, prefix: str) -> tuple[str, dict[str, object]]:
    """DuckDB text that computes the range of a row of stored columns by binary search, and its parameters."""
    first = target.table.column_by_id[target.index.key[0]]
    name = column_name(first.id)
    # A UUID is compared as bytes, as it is sorted.
    type_ = "BLOB" if first.type.kind is Kind.UUID else first.type.stored

    def halve(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        below = f"{name} < CAST(${prefix}{middle} AS {type_})"
        return f"CASE WHEN {below} THEN {halve(low, middle)} ELSE {halve(middle + 1, high)} END"

    # DuckDB accepts timestamps with time zone from Python only as text.
    values = [value.isoformat() if isinstance(value, datetime) else value for value in split_points.values]
    return halve(0, len(values)), {f"{prefix}{place}": value for place, value in enumerate(values)}


def choose_split_points(
    source: IndexSource, target: BuiltIndex, ranges: int, kernel_context: KernelContext
) -> SplitPoints:
    with kernel_context.sorter() as sorter:
        return split_evenly(_sample(sorter, source, target, kernel_context), ranges)


def _sample(
    sorter: Sorter, source: IndexSource, target: BuiltIndex, kernel_context: KernelContext
) -> list[tuple[Any, int]]:
    first = target.table.column_by_id[target.index.key[0]]
    columns = columns_read(target.table, target.index, [first], filled=True)
    scan = plan_columns(
        source.table, source.index, columns, _some(source.parts), kernel_context.warehouse, "sample", _SAMPLED
    )
    entries = select_entries(target.table, target.index, f"({scan.sql})", [first], filled=True)
    name = column_name(first.id)
    values = f"SELECT {stored_output((first.id, first.type))} FROM ({entries})"  # noqa: S608 - named by id
    sql = f"SELECT {name}, count(*) FROM ({values}) GROUP BY {name} ORDER BY {name} NULLS LAST"  # noqa: S608
    return [(value, int(count)) for value, count in sorter.fetch(sql, Scan(sql, scan.parameters, scan.relations))]


def _some(parts: SnapshotParts) -> SnapshotParts:
    """A sample of the files; inline rows are sampled only if there are no files."""
    files = sorted(parts.files, key=lambda file: (file.segment.key_min, file.segment.id))
    step = -(-len(files) // _FILES_MAX)
    return SnapshotParts(tuple(files[::step]), ()) if files else parts


def split_evenly(sample: Sequence[tuple[Any, int]], ranges: int) -> SplitPoints:
    """At most `ranges` ranges of about equal size, from sampled values in order with their counts. All rows with one
    value are in one range, however many they are.

    >>> split_evenly([("a", 2), ("b", 1), ("c", 1), ("d", 8), ("e", 2), (None, 1)], 3).values
    ('d', 'e')
    """
    each = sum(count for _, count in sample) / ranges
    values: list[Any] = []
    rows = last = 0
    for value, count in sample:
        # A value belongs to the range in which the middle of its rows lies.
        place = int((rows + count / 2) / each)
        if rows and value is not None and place > last:
            values.append(value)
        rows, last = rows + count, place
    return SplitPoints(tuple(values))
