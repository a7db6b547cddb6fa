"""Long waits inside a node, published in the catalog: a cycle of waits may run through several nodes.

A wait for a key that only its node knows of is on record in memory alone. One that lasts is written down while other
sessions wait through the catalog: as a wait for a key of its own, which all its blockers hold. So every node sees all
waits of a cycle, and one of them gives way.

**Invariant:** a published wait names exactly the transactions that block it; it is published again when these change.

**Invariant:** while no session waits through the catalog nothing is written; a wait of less than half a second asks
nothing.
A cycle has a victim within a second after its last wait began.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.engine.locks.lock_graph import Party
from seachange.engine.locks.shared_locks import SharedLocks
from seachange.engine.locks.table_locks import NodeTableLocks
from seachange.model.ids import Epoch, KeyHash
from seachange.model.locking import NO_GUARD, LockOwner, LockPolicy, LockQueues, LockStrength, LockWish
from seachange.storage.keys import wait_hash

Blockers = frozenset[LockOwner]
# Between two looks at the waits of other nodes: while none is known, and while the own one is published.
_QUIET_S, _PUBLISHED_S = 0.5, 0.1


class LocalWaits:
    """Of one epoch."""

    def __init__(self, catalog: Catalog, epoch: Epoch, shared: SharedLocks, tables: NodeTableLocks) -> None:
        self._catalog = catalog
        self._epoch = epoch
        self._shared = shared
        self._tables = tables
        self._numbers = count()

    def begin(self, owner: LockOwner) -> PublishedWait:
        return PublishedWait(self, owner)

    def queues(self) -> LockQueues:
        return self._catalog.lock_queues()

    def judge(
        self, queues: LockQueues, owner: LockOwner, suspected: tuple[Party, ...] | None, moved: set[Party]
    ) -> tuple[Party, ...] | None:
        return self._shared.judge(queues, Party(self._epoch, owner.actor), suspected, moved)

    def publish(self, owner: LockOwner, blockers: Blockers) -> KeyHash:
        """Gives the key of the wait, under which it is given up."""
        key = wait_hash(self._epoch, next(self._numbers))
        wish = LockWish(key, LockStrength.UPDATE, NO_GUARD)
        self._tables.write_down([(blocker, wish) for blocker in sorted(blockers)])
        self._catalog.take_locks(self._epoch, owner, [wish], LockPolicy.WAIT, 1)
        return key

    def forget(self, owner: LockOwner, key: KeyHash) -> None:
        self._catalog.release_locks(self._epoch, owner, (key,))


class PublishedWait:
    """One wait, as its own thread looks at it from time to time."""

    def __init__(self, waits: LocalWaits, owner: LockOwner) -> None:
        self._waits = waits
        self._owner = owner
        self._key: KeyHash | None = None
        self._blockers: Blockers = frozenset()
        self._suspected: tuple[Party, ...] | None = None
        self._moved: set[Party] = set()

    def look(self, blockers: Blockers) -> float:
        """Raises DeadlockDetected if the wait is the victim of a cycle. Without the catalog there is nothing to see."""
        with suppress(errors.CatalogUnavailable, errors.StaleNode):
            queues = self._waits.queues()
            if not queues.waits:
                self._suspected = None
                return _QUIET_S
            if blockers != self._blockers:
                self._key = self._waits.publish(self._owner, blockers)
                self._blockers, self._suspected = blockers, None
            else:
                self._suspected = self._waits.judge(queues, self._owner, self._suspected, self._moved)
        return _PUBLISHED_S

    def end(self) -> None:
        if self._key is not None:
            with suppress(errors.OperationalError):
                self._waits.forget(self._owner, self._key)
