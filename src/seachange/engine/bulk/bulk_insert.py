"""Bulk inserts: any number of rows written directly to sorted segments of every index, in bounded memory.

The primary index is sorted from the stream, secondary ones from the primary's segments. Duplicates within the load are
neighbours after sorting; duplicates of existing rows are found by one join per unique index.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from seachange.engine.buffer.row_writer import duplicate_key
from seachange.engine.buffer.segment_staging import abandon, shape_of
from seachange.engine.buffer.staged import merge_deleted
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import StagedFile
from seachange.engine.bulk.bulk_rows import BulkRows, distinct_of, unique_of
from seachange.engine.bulk.entry_files import sorter_of
from seachange.engine.constraints.computed_values import filler_of
from seachange.engine.constraints.uncommitted import record_duplicate
from seachange.engine.encode.write_plan import EntryPlan, WritePlan
from seachange.engine.reads.row_reads import RowReads
from seachange.model.schema.descriptor import Column
from seachange.model.segments import Segment, SegmentKind
from seachange.runtime.faults import reach
from seachange.storage.entries import select_entries
from seachange.storage.plan import plan_scan
from seachange.storage.segment_writer import SegmentShape
from seachange.storage.sorter import Sorter

# The segments of each index, the primary one first.
Written = list[tuple[EntryPlan, list[Segment]]]


def are_apart(segments: Sequence[Segment]) -> bool:
    """Whether no two segments can have a key in common."""
    ordered = sorted(segments, key=lambda segment: segment.key_min)
    return all(low.key_max < high.key_min for low, high in pairwise(ordered))


class BulkInsert:
    """One load of rows into one table. A failure leaves no segment staged."""

    def __init__(self, txn: TransactionState, reads: RowReads, plan: WritePlan) -> None:
        self._txn = txn
        self._reads = reads
        self._plan = plan
        # The segments of the primary index.
        self.segments: list[Segment] = []

    def run(self, rows: pa.RecordBatchReader) -> int:
        written: Written = []
        bulk_rows = BulkRows(self._plan, self, filler_of(self._txn, self._plan), self._txn.client.interrupts.check)
        with sorter_of(self._txn) as sorter:
            try:
                self._write(sorter, bulk_rows.stored(rows), written)
                for plan, segments in written:
                    self._check_existing(sorter, plan, segments)
            except Exception:
                abandon(self._txn, [s.id for _, segments in written for s in segments])
                raise
        self._stage(written)
        return bulk_rows.count

    def adopt(self, written: Written) -> None:
        """Stages segments that others (Spark tasks) have written in the shapes of the plan's indexes. If this fails,
        the caller still owns them."""
        with sorter_of(self._txn) as sorter:
            for plan, segments in written:
                self._check_disjoint(sorter, plan, segments)
                self._check_existing(sorter, plan, segments)
        self._stage(written)

    def _write(self, sorter: Sorter, rows: pa.RecordBatchReader, written: Written) -> None:
        """`written` is filled as segments are finished, so that a failure can abandon them."""
        entry = self._plan.primary
        primary = sorter.sort_stream(rows, self.shape(entry), distinct_of(self._plan, entry))
        written.append((entry, primary))
        self._txn.parts.warehouse.remember(primary)
        for plan in self._plan.entries[1:]:
            if plan.behaviour.writes:
                self._txn.client.interrupts.check()
                written.append((plan, self._write_secondary(sorter, plan, primary)))

    def _stage(self, written: Written) -> None:
        for plan, segments in written:
            buffer = self._txn.buffer.of(plan)
            files = [StagedFile(segment, self._txn.snapshot.seq, plan) for segment in segments]
            for file in files:
                self._txn.buffer.stage(buffer, file)
            merge_deleted(self._txn.parts.warehouse, self._txn.buffer, buffer, files)
        self.segments = written[0][1]
        reach("bulk.written")

    def rowids(self, count: int) -> int:
        return self._txn.parts.rowids.take(self._txn.epoch.epoch, count)

    def defaults(self, column: Column, count: int) -> Sequence[Any]:
        return self._txn.sequences.defaults(column, count)

    def shape(self, plan: EntryPlan) -> SegmentShape:
        """The load may insert keys again that a bulk write of this transaction has removed."""
        own = self._txn.buffer.indexes.get(plan.index.id)
        return shape_of(plan, SegmentKind.DATA, fresh=own is None or not own.hiding)

    # Secondary indexes and existing rows.

    def _write_secondary(self, sorter: Sorter, plan: EntryPlan, primary: list[Segment]) -> list[Segment]:
        segments = sorter.sort_query(
            select_entries(self._plan.table, plan.index, "read_parquet($files)", filled=True),
            {"files": self._txn.parts.warehouse.paths(primary)},
            self.shape(plan),
            distinct_of(self._plan, plan),
        )
        self._txn.parts.warehouse.remember(segments)
        return segments

    def _check_existing(self, sorter: Sorter, plan: EntryPlan, segments: list[Segment]) -> None:
        """Raises on the first key of the load that exists already, committed or in this transaction; or records it."""
        unique = unique_of(self._plan, plan)
        if unique is None or not segments:
            return
        key = [self._plan.table.column_by_id[c] for c in unique.columns]
        paths = self._txn.parts.warehouse.paths(segments)
        hit = sorter.first_common(self._existing(plan, key), paths, key, unique.nulls_distinct)
        if hit is not None and plan.checks:
            raise unique.duplicate(hit)
        if not plan.checks:
            hit = hit or sorter.first_repeated(paths, unique.columns, unique.nulls_distinct)
            if hit is not None:
                record_duplicate(self._txn, plan, duplicate_key(self._plan.table, plan, hit))

    def _check_disjoint(self, sorter: Sorter, plan: EntryPlan, segments: Sequence[Segment]) -> None:
        """Raises on the first key that occurs in more than one segment. No segment contains a key twice."""
        unique = distinct_of(self._plan, plan)
        if unique is None or (plan.is_primary and are_apart(segments)):
            return
        hit = sorter.first_repeated(self._txn.parts.warehouse.paths(segments), unique.columns, unique.nulls_distinct)
        if hit is not None:
            raise unique.duplicate(hit)

    def _existing(self, plan: EntryPlan, key: list[Column]) -> Any:
        own = self._txn.buffer.of(plan).overlay()
        parts = self._reads.index_parts(self._plan.table, plan.index)
        return plan_scan(self._plan.table, plan.index, key, parts, own, self._txn.parts.warehouse, "existing")
