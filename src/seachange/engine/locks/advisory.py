"""Advisory locks of a session: application-defined keys, exclusive or shared in the whole cluster.

A session-level lock is counted and survives ROLLBACK; a transaction-level one ends with its transaction. Both are taken
within the node first, where waiting is cheap, then between nodes.

**Invariant:** a lock that is counted here is held in the catalog, as long as the epoch in which it was taken lives. A
session whose locks were lost with their epoch gets an error before it does anything else.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from seachange import errors
from seachange.engine.locks.key_locks import LockTable
from seachange.engine.locks.shared_locks import SharedLocks
from seachange.model.ids import KeyHash
from seachange.model.locking import AdvisoryCall, AdvisoryVerb, LockOwner, LockPolicy, LockStrength, LockWish

# Session-level locks have scopes of their own, apart from those of transactions, so that one can be released while the
# other stays.
_SCOPES: dict[LockStrength, int] = {LockStrength.SHARE: -1, LockStrength.UPDATE: -2}
_NAMES: dict[LockStrength, str] = {LockStrength.SHARE: "ShareLock", LockStrength.UPDATE: "ExclusiveLock"}


class EpochLocks(Protocol):
    """The lock tables of an epoch: of the node, and between nodes."""

    locks: LockTable
    shared: SharedLocks


class Taker(Protocol):
    """The transaction in which a lock is taken."""

    @property
    def owner(self) -> LockOwner: ...

    @property
    def epoch(self) -> EpochLocks: ...

    def take_key(self, owner: LockOwner, wish: LockWish, policy: LockPolicy) -> bool: ...


class AdvisoryLocks:
    def __init__(self, notices: list[str] | None = None) -> None:
        self._notices = notices if notices is not None else []
        self._held: Counter[tuple[KeyHash, LockStrength]] = Counter()
        self._epoch: EpochLocks | None = None
        # Counts locks taken and released: a statement that did either is not run again.
        self.changes = 0

    @property
    def any_held(self) -> bool:
        return bool(self._held)

    def check_epoch(self, epoch: EpochLocks) -> None:
        if self._held and self._epoch is not epoch:
            self._held.clear()
            raise errors.AdvisoryLocksLost()

    def run(self, call: AdvisoryCall, key: KeyHash | None, taker: Taker) -> bool:
        """Whether the lock was taken or released."""
        if call.verb is AdvisoryVerb.UNLOCK_ALL:
            self.unlock_all(taker.owner.actor)
            return True
        assert key is not None
        if call.verb is AdvisoryVerb.UNLOCK:
            return self._unlock(key, call.strength, taker.owner.actor)
        policy = LockPolicy.SKIP if call.verb is AdvisoryVerb.TRY else LockPolicy.WAIT
        wish = LockWish(key, call.strength, key)
        if not call.of_session:
            return taker.take_key(taker.owner, wish, policy)
        return self._lock(key, call.strength, policy, taker)

    def _lock(self, key: KeyHash, strength: LockStrength, policy: LockPolicy, taker: Taker) -> bool:
        name = (key, strength)
        if not self._held[name]:
            owner = LockOwner(taker.owner.actor, _SCOPES[strength])
            if not taker.take_key(owner, LockWish(key, strength, key), policy):
                del self._held[name]
                return False
        self._epoch = taker.epoch
        self._held[name] += 1
        self.changes += 1
        return True

    def _unlock(self, key: KeyHash, strength: LockStrength, actor: int) -> bool:
        name = (key, strength)
        if name not in self._held or self._epoch is None:
            self._notices.append(f"you don't own a lock of type {_NAMES[strength]}")
            return False
        if self._held[name] == 1:
            owner = LockOwner(actor, _SCOPES[strength])
            # The catalog first, as this may fail: then the lock is still held.
            self._epoch.shared.release(owner, key)
            self._epoch.locks.release(owner, key)
            del self._held[name]
        else:
            self._held[name] -= 1
        self.changes += 1
        return True

    def unlock_all(self, actor: int) -> None:
        if self._held and self._epoch is not None:
            for strength in {strength for _, strength in self._held}:
                owner = LockOwner(actor, _SCOPES[strength])
                self._epoch.shared.release_all(owner)
                self._epoch.locks.release_all(owner)
            self._held.clear()
            self.changes += 1
