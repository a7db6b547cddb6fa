"""Table locks of the transactions of one epoch, and their publication to other nodes.

The weak modes, which statements take implicitly, are recorded in memory only. A strong mode is requested in the
catalog; each node then writes the conflicting locks of its open transactions to the catalog, and answers (`refresh`).
From then on, as long as there is a strong lock on the table or a request for one, statements take their locks on it in
the catalog, in turn.

**Invariant:** a transaction records a lock before it checks whether the table is contended, and a node marks a table as
contended before it reads the records. So a request finds each open transaction on record, or that one waits for it.

**Invariant:** while a lock that conflicts with ROW EXCLUSIVE is granted, no other session commits rows of the table.
Before it is granted, every live node has recorded its conflicting open transactions, and they have ended.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from seachange.catalog.port import Catalog
from seachange.engine.locks.shared_locks import SharedLocks
from seachange.model.ids import DescriptorId, Epoch, KeyHash, TableId
from seachange.model.locking import (
    CONFLICTS,
    NO_GUARD,
    STRONG_TABLE_LOCKS,
    LockOwner,
    LockWait,
    LockWish,
    ShownLock,
    TableLock,
)
from seachange.storage.keys import table_hash


@dataclass(frozen=True, slots=True)
class StrongLock:
    """A lock of LOCK TABLE, or of a statement that takes rows away."""

    owner: LockOwner
    table_id: DescriptorId
    mode: TableLock


@dataclass(slots=True, eq=False)
class LockScope:
    """Locks that end together: with the transaction, or with ROLLBACK TO the savepoint before them. `modes` are the
    weak table locks. `is_shared`: some are in the catalog, which the commit releases. `is_answered`: some were put
    there by `refresh`, maybe since."""

    owner: LockOwner
    modes: dict[DescriptorId, TableLock] = field(default_factory=dict)
    strong: list[StrongLock] = field(default_factory=list)
    is_used: bool = False
    is_shared: bool = False
    is_answered: bool = False

    @property
    def owners(self) -> tuple[LockOwner, ...]:
        return (self.owner, *(lock.owner for lock in self.strong))


class Scopes(Protocol):
    """The locks of one open transaction."""

    scopes: list[LockScope]


class NodeTableLocks:
    def __init__(self, catalog: Catalog, epoch: Epoch, shared: SharedLocks) -> None:
        self._catalog = catalog
        self._epoch = epoch
        self._shared = shared
        self._open: dict[int, Scopes] = {}
        self._looking = threading.Lock()
        self._answered = 0
        # The keys of tables with a strong lock, or a request for one.
        self.contended: frozenset[KeyHash] = frozenset()

    def enter(self, ticket: int, transaction: Scopes) -> None:
        self._open[ticket] = transaction

    def leave(self, ticket: int) -> None:
        """Called before its locks are released; a lock that `_answer` publishes concurrently is released there."""
        self._open.pop(ticket, None)

    def refresh(self) -> None:
        """Reads which tables are contended, and answers new requests."""
        with self._looking:
            known = self._catalog.table_locks()
            requests = [wait for wait in known.waits if wait.strength in STRONG_TABLE_LOCKS]
            held = {lock.key for lock in known.held if lock.strength in STRONG_TABLE_LOCKS}
            self.contended = frozenset(held.union(request.key for request in requests))
            if requests and known.requests > self._answered:
                self._answer(known.requests, requests)

    def shown(self, table_ids: Iterable[TableId]) -> list[ShownLock]:
        """The locks on some tables: those in the catalog, and the weak ones of this node."""
        ids = {table_hash(table_id): table_id for table_id in table_ids}
        known = self._catalog.table_locks()
        found = [
            ShownLock(ids[each.key], each.epoch, each.actor, each.strength, granted)
            for listed, granted in ((known.held, True), (known.waits, False))
            for each in listed
            if each.key in ids and isinstance(each.strength, TableLock)
        ]
        listed_before = set(found)
        for transaction in self._open.copy().values():
            for scope in tuple(transaction.scopes):
                for table_id, mode in scope.modes.copy().items():
                    lock = ShownLock(TableId(table_id), self._epoch, scope.owner.actor, mode, True)
                    if table_hash(table_id) in ids and lock not in listed_before:
                        found.append(replace(lock, fastpath=True))
        return found

    def write_down(self, held: Sequence[tuple[LockOwner, LockWish]]) -> None:
        """Locks of others in this node, which end with what their owners' locks end with."""
        owners = {owner for owner, _ in held}
        scopes = [
            (ticket, scope)
            for ticket, transaction in self._open.copy().items()
            for scope in tuple(transaction.scopes)
            if not owners.isdisjoint(scope.owners)
        ]
        self._send(0, scopes, held)

    def _answer(self, upto: int, requests: Sequence[LockWait]) -> None:
        found = list(self._held_against(requests))
        held = [(scope.owner, wish) for _, scope, wish in found]
        self._send(upto, [(ticket, scope) for ticket, scope, _ in found], held)
        self._answered = upto

    def _send(
        self, upto: int, scopes: Sequence[tuple[int, LockScope]], held: Sequence[tuple[LockOwner, LockWish]]
    ) -> None:
        for _, scope in scopes:
            scope.is_answered = True
        self._catalog.answer_requests(self._epoch, upto, held)
        for ticket, scope in scopes:
            transaction = self._open.get(ticket)
            if transaction is None or scope not in transaction.scopes:
                self._shared.release_scopes(scope.owner.actor, tuple(owner.scope for owner in scope.owners))

    def _held_against(self, requests: Sequence[LockWait]) -> Iterator[tuple[int, LockScope, LockWish]]:
        for ticket, transaction in self._open.copy().items():
            for scope in tuple(transaction.scopes):
                for table_id, mode in scope.modes.copy().items():
                    key = table_hash(table_id)
                    if any(self._is_against(request, key, mode, scope.owner.actor) for request in requests):
                        yield ticket, scope, LockWish(key, mode, NO_GUARD)

    def _is_against(self, request: LockWait, key: KeyHash, mode: TableLock, actor: int) -> bool:
        is_own = (request.epoch, request.actor) == (self._epoch, actor)
        return request.key == key and mode in CONFLICTS[request.strength] and not is_own
