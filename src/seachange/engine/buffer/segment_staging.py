"""Writing the segments of a transaction: ids are reserved in the catalog first, then the files are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.encode.write_plan import EntryPlan
from seachange.model.ids import SegmentId
from seachange.model.segments import Segment, SegmentKind
from seachange.pipeline.reservation import reserve_files
from seachange.storage.arrow import schema_of
from seachange.storage.segment_footer import ROW_GROUP_ROWS, SECONDARY_ROW_GROUP_ROWS
from seachange.storage.segment_writer import SegmentShape, SegmentWriter

Row = tuple[Any, ...]


def shape_of(plan: EntryPlan, kind: SegmentKind, fresh: bool) -> SegmentShape:
    columns = plan.columns if kind is SegmentKind.DATA else plan.columns[: plan.key_width]
    key = tuple(c for c, _ in plan.columns[: plan.key_width])
    rows = ROW_GROUP_ROWS if plan.is_primary else SECONDARY_ROW_GROUP_ROWS
    return SegmentShape(
        columns, key, plan.index.id, plan.layout_id, kind, fresh, row_group_rows=rows, compression=plan.compression
    )


def reserve(txn: TransactionState, count: int) -> Sequence[SegmentId]:
    return reserve_files(txn.parts.catalog, txn.epoch.epoch, txn.parts.files, count)


def abandon(txn: TransactionState, ids: Sequence[SegmentId]) -> None:
    """Marks files that no commit will refer to as garbage now, instead of when the epoch ends."""
    if ids:
        txn.parts.catalog.abandon_segments(txn.epoch.epoch, ids)


def write_rows(
    txn: TransactionState, plan: EntryPlan, rows: Sequence[Row], kind: SegmentKind, fresh: bool
) -> list[Segment]:
    """Writes rows in key order (only their keys, for tombstones) as segments."""
    if not rows:
        return []
    shape = shape_of(plan, kind, fresh)
    schema = schema_of(shape.columns)
    columns = [pa.array(v, f.type) for v, f in zip(zip(*rows, strict=True), schema, strict=True)]
    return _write(txn, shape, pa.Table.from_arrays(columns, schema=schema))


def write_without(
    txn: TransactionState, plan: EntryPlan, segment: Segment, positions: NDArray[np.int64]
) -> list[Segment]:
    """Writes a segment again without the rows at these positions."""
    if len(positions) == segment.rows:
        return []
    shape = shape_of(plan, segment.kind, segment.fresh)
    table = pq.read_table(txn.parts.warehouse.path(segment)).select([f.name for f in schema_of(shape.columns)])
    kept = np.ones(segment.rows, dtype=bool)
    kept[positions] = False
    return _write(txn, shape, table.filter(pa.array(kept)))


def _write(txn: TransactionState, shape: SegmentShape, table: pa.Table) -> list[Segment]:
    segments = SegmentWriter(txn.parts.files, shape, lambda count: reserve(txn, count)).write(table)
    txn.parts.warehouse.remember(segments)
    return segments
