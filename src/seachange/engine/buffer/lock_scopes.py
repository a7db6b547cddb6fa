"""The locks of a transaction by savepoint, and how they are taken in the catalog."""

from __future__ import annotations

from collections.abc import Sequence

from seachange.engine.buffer.current_statement import CurrentStatement
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.locks.table_locks import LockScope, StrongLock
from seachange.engine.replica.epoch import EpochState
from seachange.model.ids import DescriptorId
from seachange.model.locking import LockOwner, LockPolicy, LocksTaken, LockWish, TableLock


class LockScopes:
    """Each savepoint begins a scope. ROLLBACK TO releases the scopes after it, the end of the transaction all of them.
    `ticket` is the number of the transaction in the registry."""

    def __init__(self, epoch: EpochState, ticket: int, client: SessionContext, statement: CurrentStatement) -> None:
        self.epoch = epoch
        self.interrupts = client.interrupts
        self._actor = client.actor
        # Its context says whether and how long to wait.
        self._statement = statement
        self.scopes = [LockScope(LockOwner(client.actor, ticket))]

    @property
    def owner(self) -> LockOwner:
        return self.scopes[-1].owner

    @property
    def waits(self) -> bool:
        return self._statement.context.waits

    @property
    def timeout_ms(self) -> int:
        return self._statement.context.lock_timeout_ms

    def begin(self) -> int:
        """Locks that are taken from now on are released by `back_to`."""
        if self.scopes[-1].is_used:
            self._add()
        return len(self.scopes) - 1

    def cut(self, mark: int) -> list[LockScope]:
        """The scopes since, which are to be released."""
        gone = self.scopes[mark:]
        del self.scopes[mark:]
        self._add()
        return gone

    def _add(self) -> None:
        self.scopes.append(LockScope(LockOwner(self._actor, self.epoch.registry.new_scope())))

    def add_strong(self, table_id: DescriptorId, mode: TableLock) -> LockOwner:
        """The owner of a lock that may be released apart from the others."""
        owner = LockOwner(self._actor, self.epoch.registry.new_scope())
        self.scopes[-1].strong.append(StrongLock(owner, table_id, mode))
        return owner

    def release_strong(self, kept: int) -> None:
        """Releases those since the last savepoint, except some."""
        gone = [lock.owner for lock in self.scopes[-1].strong[kept:]]
        del self.scopes[-1].strong[kept:]
        if gone:
            self.epoch.shared.release_scopes(self._actor, tuple(owner.scope for owner in gone))
        for owner in gone:
            self.epoch.locks.release_all(owner)

    def take(
        self, owner: LockOwner, wishes: Sequence[LockWish], policy: LockPolicy, most: int | None = None
    ) -> Sequence[bool]:
        """Between nodes."""
        self._mark_shared()
        taken = self.epoch.shared.take(owner, wishes, policy, self.interrupts, self.timeout_ms, most)
        self._require(owner, wishes, taken, policy)
        return taken.granted

    def take_strong(self, owner: LockOwner, wish: LockWish, policy: LockPolicy) -> None:
        self._mark_shared()
        refresh = self.epoch.tables.refresh
        taken = self.epoch.shared.take_strong(owner, wish, policy, self.interrupts, self.timeout_ms, refresh)
        self._require(owner, [wish], taken, policy)

    def take_key(self, owner: LockOwner, wish: LockWish, policy: LockPolicy) -> bool:
        """Takes a lock that is not on a row: within the node, then between nodes. If either refuses, neither is
        held."""
        locks = self.epoch.locks
        self.scopes[-1].is_used = True
        held = locks.holds(owner, wish.key)
        limits = self.timeout_ms, self.interrupts, self.epoch.local_waits
        if not locks.acquire(owner, wish.key, wish.strength, policy, *limits):
            return False
        granted = False
        try:
            (granted,) = self.take(owner, [wish], policy)
        finally:
            if not granted and not held:
                locks.release(owner, wish.key)
        return granted

    def _mark_shared(self) -> None:
        """The scope has locks in the catalog to release."""
        self.scopes[-1].is_used = self.scopes[-1].is_shared = True

    def _require(self, owner: LockOwner, wishes: Sequence[LockWish], taken: LocksTaken, policy: LockPolicy) -> None:
        if policy is LockPolicy.NOWAIT and not all(taken.granted):
            raise self.epoch.shared.refused(wishes[len(taken.granted) - 1], owner)
        # Keys are locked before they are checked: everything committed before the grant must be applied by then.
        if taken.head > self.epoch.applied:
            self.epoch.catch_up()

    def shared(self) -> tuple[int, ...]:
        """The scopes whose locks in the catalog the commit releases."""
        return tuple(owner.scope for scope in self.scopes if scope.is_shared for owner in scope.owners)

    def note_committed(self) -> None:
        for scope in self.scopes:
            scope.is_shared = False

    def release(self, scopes: Sequence[LockScope]) -> None:
        found = [scope for scope in scopes if scope.is_shared or scope.is_answered]
        shared = tuple(owner.scope for scope in found for owner in scope.owners)
        if shared:
            self.epoch.shared.release_scopes(self._actor, shared)
        for scope in scopes:
            for owner in scope.owners:
                self.epoch.locks.release_all(owner)
