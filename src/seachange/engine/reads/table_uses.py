"""The tables that a transaction uses: in which versions, and under which table locks.

**Invariant:** a table is locked, and its version is on record, before anything of it is read or written.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange import errors
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import RowsFit
from seachange.model.ids import Seq
from seachange.model.isolation import Isolation
from seachange.model.locking import TableLock
from seachange.model.schema.descriptor import Table
from seachange.model.schema.shape import has_same_plan


@dataclass(frozen=True, slots=True)
class TableUses:
    state: TransactionState

    def use(self, table: Table, mode: TableLock = TableLock.ACCESS_SHARE) -> None:
        state = self.state
        state.statement.seen.add(table.id)
        if state.pending.changes(table):
            state.shapes.check(table.id, state.snapshot.seq)
            return
        modes = state.write_locks.tables.modes
        if modes.get(table.id, 0) < mode:
            # Rows that a statement only brings depend on nothing.
            self.hold(table, mode, mode is not TableLock.ROW_EXCLUSIVE or table.id in modes)
        state.shapes.use(table, state.snapshot.seq)
        fit = state.buffer.fits.get(table.id)
        if fit is not None and fit.table.version != table.version:
            self._check_fit(fit, table)
        state.used[table.id] = table.version

    def hold(self, table: Table, mode: TableLock, reads: bool) -> None:
        """A statement that reads and had to wait is run again: it is to see what the other transaction has done."""
        state = self.state
        # As of a limit it would see the same again.
        moves = state.isolation is Isolation.READ_COMMITTED and not state.snapshot.is_held
        if state.write_locks.tables.hold(table.id, mode) and reads and moves:
            changed = self._changed_since(table)
            if changed > state.snapshot.seq:
                raise errors.RowChanged(seq=changed)

    def _changed_since(self, table: Table) -> Seq:
        epoch = self.state.epoch
        with epoch.lock:
            newest = epoch.schemas.newest.by_id.get(table.id)
            if newest is None or newest.version != table.version:
                return epoch.applied
            return epoch.conflicts.newest_touching([table.primary.id])

    def _check_fit(self, fit: RowsFit, table: Table) -> None:
        """A statement that went back to a limit never meets rows that have gone on to a later version."""
        if self.state.buffer.writes_to(table.id) and not has_same_plan(fit.table, table):
            raise errors.SerializationFailure(detail=f"{table.name} has changed since the transaction wrote to it")
