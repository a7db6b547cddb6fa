"""The backfills and validations of a schema change over rows that only one transaction sees: those of a table that it
has created or emptied, or that an earlier statement has found empty, which its COMMIT checks. They run inside the
statement, in this process, with the kernels of jobs.

**Invariant:** only the transaction's own buffer is read, and only written through its journal: ROLLBACK TO undoes an
index that was built, and a statement that fails leaves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange import errors
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import IndexBuffer, StagedFile
from seachange.engine.bulk.bulk_constraints import Load
from seachange.engine.bulk.local_pipeline import local_pipeline
from seachange.engine.constraints.foreign_key import ForeignKeys
from seachange.engine.reads.row_reads import RowReads
from seachange.engine.transaction.validate import conflict_with
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


def has_own_rows(txn: TransactionState, table_id: TableId) -> bool:
    """Whether every row of the table is the transaction's own. Raises SerializationFailure if it relies on that, and
    another transaction has inserted rows since."""
    if txn.pending.is_own(table_id):
        return True
    relied = next((table for table, _ in txn.declared.relied_empty.values() if table.id == table_id), None)
    if relied is None:
        return False
    if not txn.epoch.image(relied, relied.primary, txn.snapshot.seq).is_empty(txn.snapshot.seq):
        raise conflict_with(txn.snapshot.seq)
    return True


@dataclass(frozen=True, slots=True)
class BufferedRows:
    """The rows of a transaction as the kernels read them."""

    txn: TransactionState

    def tables(self) -> dict[int, Table]:
        return {table.id: table for table in self.txn.schema.every_table()}

    def load(self, table: Table, index: Index) -> IndexSource:
        if not has_own_rows(self.txn, table.id):
            raise errors.Bug(detail=f"table {table.name} has rows of other transactions")
        return IndexSource(table, index, NOT_ATTACHED, own_parts(self.txn.buffer.indexes.get(index.id)))

    def hidden(self, table: Table, index: Index) -> IndexSource | None:
        return None

    def replaced(self, table: Table) -> IndexSource | None:
        return None


@dataclass(frozen=True, slots=True)
class OwnTables:
    """`OwnRowsPort`."""

    txn: TransactionState
    reads: RowReads
    foreign_keys: ForeignKeys

    def is_own(self, table_id: TableId) -> bool:
        return has_own_rows(self.txn, table_id)

    def run_own(self, op: BackfillIndexes | Validate) -> None:
        if isinstance(op, Validate) and isinstance(op.element, elements.ForeignKeyElement):
            self._check_references(op.element)
            return
        txn, at = self.txn, self.txn.snapshot.seq
        pipeline = local_pipeline(
            txn.parts, txn.epoch, txn.client.interrupts, txn.schema.object_by_id, BufferedRows(txn)
        )
        if isinstance(op, BackfillIndexes):
            _stage(txn, op.table_id, pipeline.backfill(op, at, (), _keep))
            return
        violation = pipeline.validate(op, at, lambda rows: None)
        if violation is not None:
            detail = f": {violation.detail}" if violation.detail else ""
            raise errors.remembered(violation.sqlstate, violation.message + detail)

    def _check_references(self, element: elements.ForeignKeyElement) -> None:
        """The parent may have rows of others: the commit relies on those that own rows refer to."""
        child = self.txn.schema.table_by_id(element.table_id)
        assert child is not None
        key = next(key for key in child.foreign_keys if key.id == element.constraint_id)
        own = own_parts(self.txn.buffer.indexes.get(child.primary.id))
        Load(self.txn, self.reads, child, own).check_now(key, self.foreign_keys)


def _keep(unit: UnitDone) -> None:
    """Nothing is recorded: a transaction that ends early is not resumed."""


def _stage(txn: TransactionState, table_id: TableId, built: tuple[Built, ...]) -> None:
    table = txn.schema.table_by_id(table_id)
    assert table is not None
    write_plan = txn.parts.write_plan(table)
    for one in built:
        plan = write_plan.entry(one.index_id)
        buffer = txn.buffer.of(plan)
        for member in one.members:
            txn.buffer.stage(buffer, StagedFile(member.segment, txn.snapshot.seq, plan))
