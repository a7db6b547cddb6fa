"""Estimates of what indexes will take: entries are made of a sample of the rows, sorted and encoded in memory.

How small entries become depends on their order and on the values that are computed for them. So rows are taken
that are close to each other, and what is made of them is encoded as the index will be.

**Invariant:** nothing is written, and nothing is drawn from a sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import nlargest
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seachange.model.ids import IndexId
from seachange.model.schema.descriptor import Column
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.rebuild import draws_values
from seachange.pipeline.kernels.runs import BuiltIndex
from seachange.pipeline.kernels.source import IndexSource, Unit
from seachange.pipeline.kernels.tasks import UNIT_ROWS, hold_rows
from seachange.storage.arrow import column_name, schema_of
from seachange.storage.bulk import in_order
from seachange.storage.entries import select_entries
from seachange.storage.image import SnapshotParts
from seachange.storage.row_groups import comparable
from seachange.storage.segment_footer import SECONDARY_ROW_GROUP_ROWS
from seachange.storage.segment_writer import encode_rows

SAMPLE_ROWS = SECONDARY_ROW_GROUP_ROWS
_BLOCKS, _ROWS_APART = 16, 8


def sampled_bytes(
    source: IndexSource, targets: Sequence[BuiltIndex], kernel_context: KernelContext
) -> dict[IndexId, int]:
    """How much the entries of each index will take; nothing is known of an index over no rows."""
    numbered = replace(source, table=replace(source.table, columns=tuple(map(_undrawn, source.table.columns))))
    units = sample_units(source.parts)
    found = [_sampled(numbered, unit, targets, kernel_context) for unit in units]
    means: dict[IndexId, int] = {}
    for index_id in [target.index.id for target in targets]:
        sizes = [each[index_id] for each in found if index_id in each]
        if sizes:
            means[index_id] = round(prod(sizes) ** (1 / len(sizes)))
    return means


def _sampled(
    source: IndexSource, unit: Unit, targets: Sequence[BuiltIndex], kernel_context: KernelContext
) -> dict[IndexId, float]:
    with kernel_context.sorter() as sorter:
        hold_rows(sorter, source, unit, targets, kernel_context, lenient=True, computes=True)
        ((count,),) = sorter.ask(f"SELECT count(*) FROM {UNIT_ROWS}")  # noqa: S608 - a constant
        if not count:
            return {}
        times = max(source.rows / count, 1.0)
        found: dict[IndexId, float] = {}
        for target in targets:
            entries = select_entries(target.table, target.index, UNIT_ROWS, filled=True)
            rows = sorter.arrow(in_order(entries, target.shape)).cast(schema_of(target.shape.columns))
            found[target.index.id] = _size(closer(rows, target, times), target) * times
    return found


def _undrawn(column: Column) -> Column:
    """Numbers of rows look like values of a sequence."""
    if draws_values(column) and (column.identity is not None or column.default_sequences or column.is_row_id):
        return replace(column, default="rowid", identity=None, default_sequences=())
    return column


def sample_units(parts: SnapshotParts) -> list[Unit]:
    """Rows in a row, and rows that are some rows apart: entries of the former are closer to each other, and compress
    better, than those of all rows, and entries of the latter do less so."""
    stored = sum(file.segment.rows for file in parts.files)
    inline = sum(table.num_rows for _, table in parts.inline)
    if stored + inline <= SAMPLE_ROWS:
        return [Unit("sample", parts)]
    files = nlargest(_BLOCKS, parts.files, key=lambda file: file.segment.rows)
    shortest = min((file.segment.rows for file in files), default=0)
    from_memory = SAMPLE_ROWS * inline // (stored + inline)
    held = [(layout_id, _some(table, from_memory * table.num_rows // inline)) for layout_id, table in parts.inline]
    chosen = SnapshotParts(tuple(files), tuple(held))
    wanted = (SAMPLE_ROWS - from_memory) // max(len(files), 1)
    return [
        Unit("close", chosen, _positions(shortest, _BLOCKS // 4, wanted, wanted)),
        Unit("apart", chosen, _positions(shortest, _BLOCKS, wanted, wanted * _ROWS_APART)),
    ]


def _positions(shortest: int, blocks: int, wanted: int, reach: int) -> str:
    """So many rows of each file, from blocks that have `reach` rows together."""
    size = max(min(shortest, reach) // blocks, 1)
    ranges = [
        f"file_row_number BETWEEN {start} AND {start + size - 1}"
        for start in range(0, shortest, shortest // blocks or 1)
    ]
    one_in = max(size * len(ranges) // max(wanted, 1), 1)
    # Values may repeat every so many rows, so that every n-th would not do.
    return f"({' OR '.join(ranges)}) AND hash(file_row_number) % {one_in} = 0"


def _some(rows: pa.Table, count: int) -> pa.Table:
    """Rows all over, at distances that are not all the same."""
    places = np.arange(count, dtype=np.int64) * rows.num_rows // max(count, 1)
    return rows.take(np.minimum(places + places % 7, rows.num_rows - 1))


def _size(rows: pa.Table, target: BuiltIndex) -> int:
    if not rows.num_rows:
        return 0
    sink = pa.BufferOutputStream()
    encode_rows(sink, rows, target.shape)
    return int(sink.tell())


def closer(rows: pa.Table, target: BuiltIndex, times: float) -> pa.Table:
    """Neighbours in a sample of sorted rows are further apart than those of all rows are: values of the first column
    repeat less often, and numbers differ by more."""
    if times <= 1 or not rows.num_rows:
        return rows
    place = rows.schema.get_field_index(column_name(target.shape.key[0]))
    values = rows.column(place).combine_chunks()
    apart = _distinct_apart(values, times)
    if apart > 1:
        positions = np.arange(len(values), dtype=np.int64)
        values = values.take(pa.array(positions - positions % apart))
    if pa.types.is_integer(values.type):
        values = pc.divide(values, pa.scalar(max(round(times), 1)).cast(pa.int64())).cast(values.type)
    return rows.set_column(place, rows.schema.field(place), values)


def _distinct_apart(values: pa.Array, times: float) -> int:
    """How many rows of the sample are as far apart as those with different values are among as many adjacent rows, by
    the estimate of Haas and Stokes for the number of distinct values of all rows."""
    counts = pc.value_counts(comparable(values)).field("counts").to_numpy()
    rows, distinct, single = len(values), len(counts), int((counts == 1).sum())
    everywhere = rows * distinct / (rows - single + single / times)
    return round(distinct / max(everywhere / times, 1))
