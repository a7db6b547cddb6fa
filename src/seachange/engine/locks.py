"""Key locks inside a node: whoever is about to write a key that an open transaction of the node has written waits for
its end, instead of running into a conflict at COMMIT.

**Invariant:** locks are advisory. Nothing is ever decided by them: the check at commit is what keeps two writers of a
key apart. They end with their transaction, and with the epoch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from seachange import errors
from seachange.model.ids import Epoch, KeyHash
from seachange.model.locking import CONFLICTS, LockPolicy, LockStrength


class _Wake(Enum):
    GRANTED = "granted"
    CANCELED = "canceled"
    OUT_OF_TIME = "out of time"
    ENDED = "ended"


@dataclass(slots=True)
class _Waiter:
    owner: int
    key: KeyHash
    strength: LockStrength
    signal: threading.Event = field(default_factory=threading.Event)
    wake: _Wake | None = None


@dataclass(slots=True)
class _Lock:
    holders: dict[int, LockStrength] = field(default_factory=dict)
    queue: deque[_Waiter] = field(default_factory=deque)


class LockTable:
    """The locks of one epoch. Owners are the tickets of transactions in the node's registry."""

    def __init__(self, epoch: Epoch) -> None:
        self._epoch = epoch
        self._mutex = threading.Lock()
        self._locks: dict[KeyHash, _Lock] = {}
        self._held: dict[int, set[KeyHash]] = {}
        self._waiting: dict[int, _Waiter] = {}
        self._ended = False
        self.waits = 0

    def acquire(
        self,
        owner: int,
        key: KeyHash,
        strength: LockStrength,
        policy: LockPolicy = LockPolicy.WAIT,
        timeout_ms: int = 0,
    ) -> bool:
        """Takes the lock, waiting for it if the policy says so; False if it was skipped. Raises LockNotAvailable,
        DeadlockDetected, QueryCanceled, or StaleNode when the epoch ends. `timeout_ms` 0 waits for ever."""
        with self._mutex:
            if self._ended:
                raise errors.StaleNode(node=self._epoch)
            lock = self._locks.setdefault(key, _Lock())
            waiter = _Waiter(owner, key, strength)
            if not any(True for _ in self._blockers(lock, waiter)):
                self._grant(lock, waiter)
                return True
            if policy is LockPolicy.SKIP:
                return False
            if policy is LockPolicy.NOWAIT:
                raise errors.LockNotAvailable(detail="another transaction holds it")
            self._enqueue(lock, waiter)
        self._await(waiter, timeout_ms)
        return True

    def release_all(self, owner: int) -> None:
        """The transaction has ended: whoever waited for it goes on."""
        with self._mutex:
            for key in self._held.pop(owner, ()):
                lock = self._locks[key]
                lock.holders.pop(owner, None)
                self._pass_on(key, lock)

    def cancel(self, owner: int) -> None:
        """Ends the wait of a statement that its client gave up, if it waits."""
        with self._mutex:
            self._wake(self._waiting.get(owner), _Wake.CANCELED)

    def end(self) -> None:
        """The epoch has ended, and with it every lock."""
        with self._mutex:
            self._ended = True
            for waiter in list(self._waiting.values()):
                self._wake(waiter, _Wake.ENDED)

    @property
    def waiting(self) -> int:
        """How many transactions wait now."""
        return len(self._waiting)

    def __len__(self) -> int:
        return len(self._locks)

    # Under the mutex.

    def _blockers(self, lock: _Lock, waiter: _Waiter) -> Iterator[int]:
        """Whom a request waits for: other holders and, unless it already has a part of the lock, who came first."""
        conflicting = CONFLICTS[waiter.strength]
        yield from (o for o, s in lock.holders.items() if o != waiter.owner and s in conflicting)
        if waiter.owner in lock.holders:
            return
        for earlier in lock.queue:
            if earlier is waiter:
                return
            if earlier.strength in conflicting:
                yield earlier.owner

    def _enqueue(self, lock: _Lock, waiter: _Waiter) -> None:
        # Whoever strengthens a lock goes first: those in the queue wait for it anyway.
        if waiter.owner in lock.holders:
            lock.queue.appendleft(waiter)
        else:
            lock.queue.append(waiter)
        self._waiting[waiter.owner] = waiter
        if self._closes_cycle(waiter.owner):
            self._forget(waiter)
            raise errors.DeadlockDetected()
        self.waits += 1

    def _closes_cycle(self, start: int) -> bool:
        """Every cycle is closed by the last of its waits, so it is enough to look from there."""
        seen: set[int] = set()
        stack = list(self._waited_for(start))
        while stack:
            owner = stack.pop()
            if owner == start:
                return True
            if owner not in seen:
                seen.add(owner)
                stack += self._waited_for(owner)
        return False

    def _waited_for(self, owner: int) -> Iterable[int]:
        waiter = self._waiting.get(owner)
        return () if waiter is None else self._blockers(self._locks[waiter.key], waiter)

    def _grant(self, lock: _Lock, waiter: _Waiter) -> None:
        held = lock.holders.get(waiter.owner)
        lock.holders[waiter.owner] = waiter.strength if held is None else max(held, waiter.strength)
        self._held.setdefault(waiter.owner, set()).add(waiter.key)

    def _pass_on(self, key: KeyHash, lock: _Lock) -> None:
        for waiter in list(lock.queue):
            if not any(True for _ in self._blockers(lock, waiter)):
                self._grant(lock, waiter)
                self._wake(waiter, _Wake.GRANTED)
        if not lock.holders and not lock.queue:
            del self._locks[key]

    def _wake(self, waiter: _Waiter | None, how: _Wake) -> None:
        if waiter is not None and waiter.wake is None:
            waiter.wake = how
            self._forget(waiter)
            waiter.signal.set()

    def _forget(self, waiter: _Waiter) -> None:
        del self._waiting[waiter.owner]
        lock = self._locks[waiter.key]
        lock.queue.remove(waiter)
        if waiter.wake is not _Wake.GRANTED:
            # Those behind it may have waited for nothing else.
            self._pass_on(waiter.key, lock)

    # Waiting, outside the mutex.

    def _await(self, waiter: _Waiter, timeout_ms: int) -> None:
        try:
            waiter.signal.wait(timeout_ms / 1_000 if timeout_ms else None)
        finally:
            with self._mutex:
                # Nothing happens to one that was woken just now.
                self._wake(waiter, _Wake.OUT_OF_TIME)
        match waiter.wake:
            case _Wake.OUT_OF_TIME:
                raise errors.LockNotAvailable(detail="lock_timeout has passed")
            case _Wake.CANCELED:
                raise errors.QueryCanceled(reason="user request")
            case _Wake.ENDED:
                raise errors.StaleNode(node=self._epoch)
            case _:
                return
