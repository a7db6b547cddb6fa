"""The table locks of a transaction: weak ones, which its statements take implicitly, and strong ones, by LOCK TABLE and
by statements that take rows away from open writers.

**Invariant:** a table is locked before its definition, in every transaction block that locks both, and a block that
changes the definition holds the table as a writer does. So a block that has written to the table can change it, and one
that has changed it can write to it, while another transaction waits for the table.
"""

from __future__ import annotations

from seachange.engine.buffer.lock_scopes import LockScopes
from seachange.model.ids import DescriptorId, KeyHash
from seachange.model.locking import (
    CONFLICTS,
    NO_GUARD,
    STRONG_TABLE_LOCKS,
    LockOwner,
    LockPolicy,
    LockStrength,
    LockWish,
    TableLock,
)
from seachange.runtime.nonblocking import may_wait
from seachange.storage.keys import change_hash, table_hash


class TableHolds:
    def __init__(self, held: LockScopes) -> None:
        self._held = held
        self._epoch = held.epoch
        # The weak table locks of all scopes.
        self.modes: dict[DescriptorId, TableLock] = {}

    def reset(self) -> None:
        """After scopes were released."""
        self.modes = {}
        for scope in self._held.scopes:
            self.modes |= scope.modes

    def _note(self, table_id: DescriptorId, mode: TableLock) -> None:
        scope = self._held.scopes[-1]
        scope.is_used = True
        scope.modes[table_id] = self.modes[table_id] = mode

    def _forget(self, table_id: DescriptorId, before: TableLock | None) -> None:
        for modes in (self._held.scopes[-1].modes, self.modes):
            if before is None:
                modes.pop(table_id, None)
            else:
                modes[table_id] = before

    def hold(self, table_id: DescriptorId, mode: TableLock, policy: LockPolicy = LockPolicy.WAIT) -> bool:
        """Takes one of the weak modes, which cost nothing unless a strong one is requested. Returns whether the catalog
        was asked."""
        before = self.modes.get(table_id)
        # Recorded before the check: either a strong request sees this record, or this check sees the request.
        self._note(table_id, mode)
        contended = self._epoch.tables.contended
        if not contended or not self._held.waits or table_hash(table_id) not in contended:
            return False
        # Not granted yet.
        self._forget(table_id, before)
        may_wait()
        self._held.take(self._held.owner, [LockWish(table_hash(table_id), mode, NO_GUARD)], policy)
        self._note(table_id, mode)
        self._epoch.tables.refresh()
        return True

    def lock(self, table_id: DescriptorId, mode: TableLock, policy: LockPolicy) -> None:
        """Takes one of the other modes. Schema changes of the table wait for the end of the transaction too."""
        owner = self.take(table_id, mode, policy)
        key = change_hash(table_id)
        self._held.take_key(owner, LockWish(key, LockStrength.SHARE, key), policy)

    def exclude_writers(self, table_id: DescriptorId) -> bool:
        """Waits for open transactions that have written or locked rows of the table; later ones wait for the end of
        this one. Returns False if that was so already."""
        if self.excludes_writers(table_id):
            return False
        self.take(table_id, TableLock.EXCLUSIVE, LockPolicy.WAIT)
        return True

    def excludes_writers(self, table_id: DescriptorId) -> bool:
        locks = (lock for scope in self._held.scopes for lock in scope.strong)
        return any(lock.table_id == table_id and lock.mode >= TableLock.EXCLUSIVE for lock in locks)

    def take(self, table_id: DescriptorId, mode: TableLock, policy: LockPolicy) -> LockOwner:
        owner = self._held.add_strong(table_id, mode)
        stops_writers = TableLock.ROW_EXCLUSIVE in CONFLICTS[mode]
        wish = LockWish(table_hash(table_id), mode, KeyHash(table_id) if stops_writers else NO_GUARD)
        if mode in STRONG_TABLE_LOCKS:
            self._held.take_strong(owner, wish, policy)
        else:
            self._held.take(owner, [wish], policy)
        return owner

    @property
    def strong_count(self) -> int:
        """Of locks since the last savepoint."""
        return len(self._held.scopes[-1].strong)

    def release_strong(self, kept: int) -> None:
        """Releases the locks that were taken on a table which no longer has the name."""
        self._held.release_strong(kept)
