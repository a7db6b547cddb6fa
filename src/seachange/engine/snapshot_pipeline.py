"""The kernels over a node: what they read is held in the node's registry while they do.

**Invariant:** as long as a kernel reads as of a sequence, no live mark of this node is above it, so nothing that it
needs is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from seachange import errors
from seachange.engine.epoch import EpochState
from seachange.engine.interrupts import Interrupts
from seachange.engine.nodeparts import NodeParts
from seachange.engine.segments import write_rows
from seachange.engine.transaction import Transaction
from seachange.engine.writeplan import EntryPlan
from seachange.model import elements
from seachange.model.descriptor import Table
from seachange.model.ids import Seq, TableId
from seachange.model.isolation import Isolation
from seachange.model.ops import BackfillIndexes, Validate
from seachange.model.segments import GenerationMember, SegmentKind
from seachange.model.work import Built, UnitDone, Violation

Row = tuple[Any, ...]


class SnapshotPipeline:
    def __init__(self, parts: NodeParts, epoch: EpochState, interrupts: Interrupts) -> None:
        self._parts = parts
        self._epoch = epoch
        self._interrupts = interrupts

    @contextmanager
    def _at(self, seq: Seq) -> Iterator[Transaction]:
        transaction = Transaction(self._parts, self._epoch, Isolation.READ_COMMITTED, seq)
        try:
            yield transaction
        finally:
            transaction.rollback()

    def backfill(
        self, op: BackfillIndexes, at: Seq, done: Sequence[UnitDone], report: Callable[[UnitDone], None]
    ) -> tuple[Built, ...]:
        with self._at(at) as transaction:
            table = self._table(op.table_id, at)
            if table.next_primary is not None and table.next_primary.id in (op.source_id, *op.index_ids):
                raise errors.FeatureNotSupported(feature="rebuilding a table that has rows", instead="")
            plan = self._parts.write_plan(table)
            rows = plan.derive(self._rows(transaction, table), self._parts.duck)
            report(UnitDone("all", (), "", len(rows)))
            return tuple(self._build(transaction, plan.entry(index_id), rows) for index_id in op.index_ids)

    def _build(self, transaction: Transaction, plan: EntryPlan, rows: Sequence[Row]) -> Built:
        entries = [plan.stored(row) for row in self._interrupts.each(rows) if plan.has_entry(row)]
        entries.sort(key=lambda entry: plan.codec.encode(entry[: plan.key_width]))
        segments = write_rows(transaction, plan, entries, SegmentKind.DATA, fresh=True)
        return Built(plan.index.id, tuple(map(GenerationMember, segments)))

    def validate(self, op: Validate, at: Seq, report: Callable[[int], None]) -> Violation | None:
        if not isinstance(op.element, elements.UniqueIndex):
            raise errors.FeatureNotSupported(feature="validating this constraint over rows", instead="")
        with self._at(at) as transaction:
            table = self._table(op.element.table_id, at)
            plan = self._parts.write_plan(table)
            rows = plan.derive(self._rows(transaction, table), self._parts.duck)
            report(len(rows))
            return _find_duplicate(plan.entry(op.element.index_id), rows)

    def rows(self, table_id: TableId, at: Seq) -> int:
        with self._at(at) as transaction:
            table = self._epoch.schema(at).by_id.get(table_id)
            return transaction.size(table).rows if table is not None else 0

    def _table(self, table_id: TableId, at: Seq) -> Table:
        table = self._epoch.schema(at).by_id.get(table_id)
        if table is None:
            raise errors.UndefinedTable(name=str(table_id))
        return table

    def _rows(self, transaction: Transaction, table: Table) -> list[Row]:
        scan = transaction.scan(table, hidden=True)
        cursor = self._parts.duck.cursor()
        try:
            for name, relation in scan.relations.items():
                cursor.register(name, relation)
            return cursor.execute(scan.sql, dict(scan.parameters)).fetchall()
        finally:
            cursor.close()


def _find_duplicate(plan: EntryPlan, rows: Sequence[Row]) -> Violation | None:
    seen: set[Row] = set()
    for row in rows:
        key = plan.unique_key(plan.stored(row)) if plan.has_entry(row) else None
        if key is not None and key in seen:
            name = plan.index.name
            return Violation("23505", f'could not create unique index "{name}"', f"key {key} is duplicated", 1)
        if key is not None:
            seen.add(key)
    return None
