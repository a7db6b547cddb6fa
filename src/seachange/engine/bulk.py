"""Bulk inserts: any number of rows straight into sorted segments of every index, in bounded memory.

The primary index is sorted from the stream; secondary ones from the segments that it became. Duplicates within the load
are neighbours after sorting; duplicates with rows that are there are found by one join per unique index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from seachange import errors
from seachange.engine.buffer import IndexBuffer, StagedFile
from seachange.engine.fill import filler_of
from seachange.engine.segments import reserve, shape_of
from seachange.engine.transactionstate import TransactionState
from seachange.engine.writeplan import EntryPlan, WritePlan
from seachange.engine.writes import duplicate_key
from seachange.model.defaults import constant_value
from seachange.model.descriptor import Column
from seachange.model.ids import SegmentId
from seachange.model.segments import Segment, SegmentKind
from seachange.runtime.faults import reach
from seachange.sql.default_text import is_drawn
from seachange.storage.arrow import arrow_type, column_name
from seachange.storage.bulk import Distinct
from seachange.storage.entries import select_entries
from seachange.storage.plan import plan_scan
from seachange.storage.segment_writer import SegmentShape
from seachange.storage.sorter import Sorter


class BulkInsert:
    """One load of rows into one table. A failure leaves no segment staged."""

    def __init__(self, txn: TransactionState, plan: WritePlan, is_new: bool) -> None:
        self._txn = txn
        self._plan = plan
        self._is_new = is_new
        self._rows = 0
        self._filler = filler_of(txn, plan)
        self._required = {column for _, column in plan.required}
        # What the primary index got.
        self.segments: list[Segment] = []

    def run(self, rows: pa.RecordBatchReader) -> int:
        written: list[tuple[EntryPlan, list[Segment]]] = []
        interrupts = self._txn.client.interrupts
        spill = self._txn.parts.data / "tmp"
        with Sorter(self._txn.parts.files, spill, self._reserve) as sorter, interrupts.reaching(sorter):
            try:
                primary = sorter.sort_stream(
                    self._stored(rows),
                    self._shape(self._plan.primary),
                    self._unique(self._plan.primary),
                )
                written.append((self._plan.primary, primary))
                self._txn.parts.warehouse.remember(primary)
                for plan in self._plan.entries[1:]:
                    if not plan.behaviour.writes:
                        continue
                    interrupts.check()
                    # One by one: what is written so far must be known when the next one fails.
                    written.append((plan, self._write_secondary(sorter, plan, primary)))
                for plan, segments in written:
                    self._check_existing(sorter, plan, segments)
            except Exception:
                self._abandon([s.id for _, segments in written for s in segments])
                raise
        for plan, segments in written:
            for segment in segments:
                self._txn.buffer.stage(self._txn.buffer.of(plan), StagedFile(segment, self._txn.snapshot, plan))
            self._take_back(plan, len(segments))
        self.segments = written[0][1]
        reach("bulk.written")
        return self._rows

    def _reserve(self, count: int) -> Sequence[SegmentId]:
        return reserve(self._txn, count)

    def _abandon(self, ids: list[SegmentId]) -> None:
        if ids:
            self._txn.parts.catalog.abandon_segments(self._txn.epoch.epoch, ids)

    def _shape(self, plan: EntryPlan) -> SegmentShape:
        """What a bulk write of this transaction had removed, the load may bring back."""
        own = self._txn.buffer.indexes.get(plan.index.id)
        return shape_of(plan, SegmentKind.DATA, fresh=own is None or not own.hiding)

    def _take_back(self, plan: EntryPlan, count: int) -> None:
        """What this transaction had deleted and the load brings back has its final version in the buffer, or in the
        load alone: a commit holds at most one version per entry."""
        buffer = self._txn.buffer.of(plan)
        if buffer.removed:
            self._take_back_removed(plan, buffer, buffer.staged[len(buffer.staged) - count :])
        deleted = [(encoded, entry) for encoded, entry in buffer.entries.items() if entry.row is None]
        for file in buffer.staged[len(buffer.staged) - count :] if deleted else ():
            reader = self._txn.parts.warehouse.reader(file.segment, plan.columns[: plan.key_width])
            positions = reader.positions([entry.key for _, entry in deleted])
            for (encoded, entry), position in zip(deleted, positions.tolist(), strict=True):
                if position >= 0:
                    self._txn.buffer.delete_staged(file, position)
                    self._txn.buffer.put(buffer, encoded, replace(entry, row=reader.row(position)))

    def _take_back_removed(self, plan: EntryPlan, buffer: IndexBuffer, load: list[StagedFile]) -> None:
        columns, warehouse = plan.columns[: plan.key_width], self._txn.parts.warehouse
        for file in load:
            keys = warehouse.reader(file.segment, columns).keys()
            for removed in buffer.removed:
                positions = warehouse.reader(removed.segment, columns).positions(keys)
                for position in positions[positions >= 0].tolist():
                    self._txn.buffer.delete_staged(removed, position)

    def _unique(self, plan: EntryPlan) -> Distinct | None:
        """Which of the first key columns must be unique within the load; None for none."""
        width = (plan.key_width if self._plan.rowid is None else 0) if plan.is_primary else plan.unique_width
        if not width or not plan.checks:
            return None
        columns = tuple(c for c, _ in plan.columns[:width])
        return Distinct(columns, lambda key: duplicate_key(self._plan.table, plan, key), plan.index.nulls_distinct)

    # The stream.

    def _stored(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The batches as the primary index stores them: columns by id, hidden row ids filled in, NULLs checked."""
        plan = self._plan.primary
        schema = pa.schema([(column_name(c), arrow_type(t)) for c, t in plan.columns])
        return pa.RecordBatchReader.from_batches(schema, self._batches(rows, schema))

    def _batches(self, rows: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        table = self._plan.table
        given = {column_name(c.id): i for i, c in enumerate(table.visible_columns)}
        by_name = {column_name(c.id): c for c in table.columns}
        for batch in rows:
            self._txn.client.interrupts.check()
            columns = []
            for field in schema:
                column = by_name[field.name]
                array = (
                    batch.column(given[field.name]) if field.name in given else self._missing(column, batch.num_rows)
                )
                columns.append(array if array.type == field.type else array.cast(field.type))
            columns = self._filled(schema, columns)
            for field, array in zip(schema, columns, strict=True):
                self._check_nulls(by_name[field.name], array)
            self._rows += batch.num_rows
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _missing(self, column: Column, count: int) -> pa.Array:
        """What the load cannot have: the hidden key, and columns that are yet to come."""
        if column.hidden:
            return self._rowids(count)
        if is_drawn(column) and column.conversion is None:
            return pa.array(self._txn.defaults(column, count), arrow_type(column.type))
        value = constant_value(column.type, None if column.conversion or column.generated else column.default)
        return pa.array([value] * count, arrow_type(column.type))

    def _filled(self, schema: pa.Schema, columns: list[pa.Array]) -> list[pa.Array]:
        if self._filler is None:
            return columns
        given = dict(zip(schema.names, columns, strict=True))
        return list((given | self._filler.values(given, column_name, recorded=True)).values())

    def _rowids(self, count: int) -> pa.Array:
        first = self._txn.parts.rowids.take(self._txn.epoch.epoch, count)
        return pa.array(np.arange(first, first + count, dtype=np.int64))

    def _check_nulls(self, column: Column, array: pa.Array) -> None:
        if column in self._required and array.null_count:
            raise errors.NotNullViolation(column=column.name, relation=self._plan.table.name)

    # Secondary indexes and what is there already.

    def _write_secondary(self, sorter: Sorter, plan: EntryPlan, primary: list[Segment]) -> list[Segment]:
        segments = sorter.sort_query(
            select_entries(self._plan.table, plan.index, "read_parquet($files)", filled=True),
            {"files": self._txn.parts.warehouse.paths(primary)},
            self._shape(plan),
            self._unique(plan),
        )
        self._txn.parts.warehouse.remember(segments)
        return segments

    def _check_existing(self, sorter: Sorter, plan: EntryPlan, segments: list[Segment]) -> None:
        """Raises on the first key of the load that is there already, committed or in this transaction."""
        unique = self._unique(plan)
        if unique is None or not segments:
            return
        key = [self._plan.table.column_by_id[c] for c in unique.columns]
        paths = self._txn.parts.warehouse.paths(segments)
        hit = sorter.first_common(self._existing(plan, key), paths, key, unique.nulls_distinct)
        if hit is not None:
            raise unique.duplicate(hit)

    def _existing(self, plan: EntryPlan, key: list[Column]) -> Any:
        own = self._txn.buffer.of(plan).overlay()
        parts = self._txn.index_parts(self._plan.table, plan.index)
        return plan_scan(self._plan.table, plan.index, key, parts, own, self._txn.parts.warehouse, "existing")
