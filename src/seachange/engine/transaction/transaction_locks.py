"""Locks that statements take on tables, on databases, and as advisory ones."""

from __future__ import annotations

from dataclasses import dataclass

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
        if self.state.write_locks.table_modes.get(table.id, 0) < mode and not self.state.pending.changes(table):
            self.uses.hold(table, mode, reads)

    def lock_table(self, table: Table, mode: TableLock, policy: LockPolicy) -> None:
        write_locks = self.state.write_locks
        if is_temporary(table.schema) or self.state.pending.is_new(table):
            # No other transaction sees it.
            return
        if mode not in WEAK_TABLE_LOCKS:
            write_locks.lock_table(table.id, mode, policy)
        elif write_locks.table_modes.get(table.id, 0) < mode:
            write_locks.hold_table(table.id, mode, policy)

    def await_table_locks(self, table: Table) -> None:
        """Waits for LOCK TABLE in SHARE UPDATE EXCLUSIVE mode and above. The lock is released at once: what takes it
        changes nothing that another transaction depends on."""
        waits = self.state.statement.context.waits
        if waits and not is_temporary(table.schema) and not self.state.pending.is_new(table):
            kept = self.state.write_locks.strong_locks
            self.state.write_locks.take_table(table.id, TableLock.SHARE_UPDATE_EXCLUSIVE, LockPolicy.WAIT)
            self.state.write_locks.release_strong(kept)

    def use_locked(self, table: Table) -> None:
        """LOCK TABLE is a use of the table, as it is once the lock was granted."""
        if self.state.isolation is Isolation.READ_COMMITTED and not self.state.pending.changes(table):
            self.state.used.setdefault(table.id, table.version)

    def advise(self, call: AdvisoryCall, key: KeyHash | None) -> bool:
        return self.state.client.advisory.run(call, key, self.state.write_locks)

    def hold_alone(self, database: Database) -> None:
        # A process that was killed uses nothing; the catalog learns it from its expiry.
        self.state.parts.catalog.expire_nodes()
        hold_alone(database, self.state.write_locks)
