"""The backfills and validations of a schema change over rows that only one transaction sees: those of a table that it
has created or emptied. They run inside its statement, in this process, with the kernels of jobs.

**Invariant:** only the transaction's own buffer is read, and only written through its journal: ROLLBACK TO undoes an
index that was built, and a statement that fails leaves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange import errors
from seachange.engine.buffer.write_buffer import IndexBuffer, StagedFile
from seachange.engine.bulk.bulk_constraints import Load
from seachange.engine.bulk.local_pipeline import local_pipeline
from seachange.engine.constraints.foreign_key import ForeignKeys, WritingTransaction
from seachange.model.change import elements
from seachange.model.change.ops import BackfillIndexes, Validate
from seachange.model.change.work import Built, UnitDone
from seachange.model.ids import TableId
from seachange.model.schema.descriptor import Index, Table
from seachange.pipeline.kernels.source import NOT_ATTACHED, IndexSource
from seachange.storage.image import SnapshotParts


def own_parts(own: IndexBuffer | None) -> SnapshotParts:
    """The entries of an index that a transaction has written."""
    if own is None:
        return SnapshotParts((), ())
    overlay = own.overlay()
    assert overlay.layout_id is not None
    return SnapshotParts(overlay.files, ((overlay.layout_id, overlay.rows),) if overlay.rows is not None else ())


@dataclass(frozen=True, slots=True)
class BufferedRows:
    """The rows of a transaction as the kernels read them."""

    txn: WritingTransaction

    def tables(self) -> dict[int, Table]:
        return {table.id: table for table in self.txn.every_table()}

    def load(self, table: Table, index: Index) -> IndexSource:
        if not self.txn.pending.is_own(table.id):
            raise errors.Bug(detail=f"table {table.name} has rows of other transactions")
        return IndexSource(table, index, NOT_ATTACHED, own_parts(self.txn.buffer.indexes.get(index.id)))


def run_own(txn: WritingTransaction, op: BackfillIndexes | Validate, foreign_keys: ForeignKeys) -> None:
    """Builds indexes, or raises the error of the first rows that violate a constraint."""
    if isinstance(op, Validate) and isinstance(op.element, elements.ForeignKeyElement):
        _check_references(txn, op.element, foreign_keys)
        return
    pipeline = local_pipeline(txn.parts, txn.epoch, txn.client.interrupts, txn.object_by_id, BufferedRows(txn))
    if isinstance(op, BackfillIndexes):
        _stage(txn, op.table_id, pipeline.backfill(op, txn.snapshot, (), _keep))
        return
    violation = pipeline.validate(op, txn.snapshot, lambda rows: None)
    if violation is not None:
        detail = f": {violation.detail}" if violation.detail else ""
        raise errors.remembered(violation.sqlstate, violation.message + detail)


def _keep(unit: UnitDone) -> None:
    """Nothing is recorded: a transaction that ends early is not resumed."""


def _stage(txn: WritingTransaction, table_id: TableId, built: tuple[Built, ...]) -> None:
    table = txn.table_by_id(table_id)
    assert table is not None
    write_plan = txn.parts.write_plan(table)
    for one in built:
        plan = write_plan.entry(one.index_id)
        buffer = txn.buffer.of(plan)
        for member in one.members:
            txn.buffer.stage(buffer, StagedFile(member.segment, txn.snapshot, plan))


def _check_references(txn: WritingTransaction, element: elements.ForeignKeyElement, foreign_keys: ForeignKeys) -> None:
    """The parent may have rows of others: the commit relies on those that own rows refer to."""
    child = txn.table_by_id(element.table_id)
    assert child is not None
    key = next(key for key in child.foreign_keys if key.id == element.constraint_id)
    Load(txn, child, own_parts(txn.buffer.indexes.get(child.primary.id))).check_now(key, foreign_keys)
