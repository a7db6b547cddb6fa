"""Locks that statements take on tables, on databases, and as advisory ones."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.catalog.dead_nodes import end_dead_nodes
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.reads.table_uses import TableUses
from seachange.engine.transaction.database_use import hold_alone
from seachange.model.ids import KeyHash
from seachange.model.isolation import Isolation
from seachange.model.locking import WEAK_TABLE_LOCKS, AdvisoryCall, LockPolicy, TableLock
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Database
from seachange.model.schema.temporary import is_temporary


@dataclass(frozen=True, slots=True)
class TransactionLocks:
    """`LockPort`."""

    state: TransactionState
    uses: TableUses

    def begin_write(self, table: Table, reads: bool = True) -> None:
        mode = TableLock.ROW_EXCLUSIVE
        if self.state.write_locks.tables.modes.get(table.id, 0) < mode and not self.state.pending.changes(table):
            self.uses.hold(table, mode, reads)

    def lock_table(self, table: Table, mode: TableLock, policy: LockPolicy) -> None:
        tables = self.state.write_locks.tables
        if self._is_own(table):
            return
        if mode not in WEAK_TABLE_LOCKS:
            tables.lock(table.id, mode, policy)
        elif tables.modes.get(table.id, 0) < mode:
            tables.hold(table.id, mode, policy)

    def _is_own(self, table: Table) -> bool:
        """Whether no other transaction sees the table."""
        return is_temporary(table.schema) or self.state.pending.is_new(table)

    def exclude_writers(self, table: Table) -> bool:
        waits = self.state.statement.context.waits
        return waits and not self._is_own(table) and self.state.write_locks.tables.exclude_writers(table.id)

    def begin_change(self, table: Table) -> None:
        """Takes the table lock of a writer before the definition is locked, in a block that may write to it later."""
        tables = self.state.write_locks.tables
        if tables.modes.get(table.id, 0) < TableLock.ROW_EXCLUSIVE and not tables.excludes_writers(table.id):
            self.uses.hold(table, TableLock.ROW_EXCLUSIVE, reads=True)

    def await_table_locks(self, table: Table) -> None:
        """Waits for LOCK TABLE in SHARE UPDATE EXCLUSIVE mode and above. The lock is released at once: what takes it
        changes nothing that another transaction depends on."""
        tables = self.state.write_locks.tables
        if self.state.statement.context.waits and not self._is_own(table):
            kept = tables.strong_count
            tables.take(table.id, TableLock.SHARE_UPDATE_EXCLUSIVE, LockPolicy.WAIT)
            tables.release_strong(kept)

    def use_locked(self, table: Table) -> None:
        """LOCK TABLE is a use of the table, as it is once the lock was granted."""
        if self.state.isolation is Isolation.READ_COMMITTED and not self.state.pending.changes(table):
            self.state.used.setdefault(table.id, table.version)

    def advise(self, call: AdvisoryCall, key: KeyHash | None) -> bool:
        return self.state.client.advisory.run(call, key, self.state.write_locks.held)

    def hold_alone(self, database: Database) -> None:
        # A process that was killed uses nothing.
        end_dead_nodes(self.state.parts.catalog)
        hold_alone(database, self.state.write_locks)
