"""Key locks within a node: a writer waits for the open transaction that has written the key, instead of failing with a
conflict at COMMIT. See `engine/locks/shared_locks.py` for locks between nodes.

**Invariant:** correctness does not depend on these locks: the check at commit keeps two writers of a key apart. They
end with their transaction, and with the epoch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Protocol

from seachange import errors
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.locks.lock_details import (
    DescribedWait,
    DescribeKey,
    describe_cycle,
    describe_holders,
    describe_key,
)
from seachange.model.ids import Epoch, KeyHash
from seachange.model.locking import CONFLICTS, LockMode, LockOwner, LockPolicy

# How long a wait lasts before it is looked at.
LONG_WAIT_S = 0.5


class _Wake(Enum):
    GRANTED = "granted"
    CANCELED = "canceled"
    OUT_OF_TIME = "out of time"
    ENDED = "ended"


@dataclass(slots=True)
class _Waiter:
    owner: LockOwner
    key: KeyHash
    strength: LockMode
    signal: threading.Event = field(default_factory=threading.Event)
    wake: _Wake | None = None
    # It was served before those that came earlier, to end a cycle.
    is_moved: bool = False


@dataclass(slots=True)
class _Lock:
    holders: dict[LockOwner, LockMode] = field(default_factory=dict)
    queue: deque[_Waiter] = field(default_factory=deque)


class LongWait(Protocol):
    """A wait that lasts."""

    def look(self, blockers: frozenset[LockOwner]) -> float:
        """Raises if it is not to go on; returns the seconds until the next look."""

    def end(self) -> None: ...


class LongWaits(Protocol):
    def begin(self, owner: LockOwner) -> LongWait: ...


def _do_nothing() -> None:
    pass


class _Whole:
    """Around a change of the lock table. Its own errors leave it whole. Missing memory and Ctrl-C come between any two
    steps: they may leave a lock that is never released, or a waiter that is never woken."""

    __slots__ = ("_give_up",)

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, (MemoryError, KeyboardInterrupt)):
            self._give_up()


class LockTable:
    """The locks of one epoch. An actor never waits for itself, even across its lock scopes."""

    def __init__(
        self, epoch: Epoch, describe: DescribeKey = describe_key, give_up: Callable[[], None] = _do_nothing
    ) -> None:
        """`describe` returns the name of the object that a key belongs to; `give_up` is called when a change was cut
        short."""
        self._epoch = epoch
        self._describe = describe
        self._mutex = threading.Lock()
        self._whole = _Whole(give_up)
        self._locks: dict[KeyHash, _Lock] = {}
        self._held: dict[LockOwner, set[KeyHash]] = {}
        # By actor.
        self._waiting: dict[int, _Waiter] = {}
        self._ended = False
        self.waits = 0

    def acquire(
        self,
        owner: LockOwner,
        key: KeyHash,
        strength: LockMode,
        policy: LockPolicy = LockPolicy.WAIT,
        timeout_ms: int = 0,
        interrupts: SessionInterrupts | None = None,
        watch: LongWaits | None = None,
    ) -> bool:
        """Takes the lock, waiting for it if the policy says so; returns False if it was skipped. Raises
        LockNotAvailable, DeadlockDetected, QueryCanceled, or StaleNode when the epoch ends. `timeout_ms` 0 means no
        timeout; `watch` checks a wait that lasts."""
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
                raise errors.LockRefused(self._describe(key), self._holders_of(lock, waiter))
            with self._whole:
                self._enqueue(lock, waiter)
            # An interrupt that arrived earlier found no waiter.
            if interrupts is not None and interrupts.is_set:
                self._wake(waiter, _Wake.CANCELED)
        self._await(waiter, timeout_ms, watch)
        return True

    def is_free(self, owner: LockOwner, key: KeyHash, strength: LockMode) -> bool:
        """Whether the owner would be granted the lock now."""
        with self._mutex:
            lock = self._locks.get(key)
            return lock is None or not any(True for _ in self._blockers(lock, _Waiter(owner, key, strength)))

    def holds(self, owner: LockOwner, key: KeyHash) -> bool:
        with self._mutex:
            return key in self._held.get(owner, ())

    def release(self, owner: LockOwner, key: KeyHash) -> None:
        with self._mutex, self._whole:
            if key in self._held.get(owner, ()):
                self._held[owner].discard(key)
                self._give_up(owner, key)

    def release_all(self, owner: LockOwner) -> None:
        """Releases all locks of a scope and wakes their waiters. Called by its own thread, which waits for none."""
        if owner not in self._held:
            return
        with self._mutex, self._whole:
            for key in self._held.pop(owner, ()):
                self._give_up(owner, key)

    def cancel(self, actor: int) -> None:
        """Cancels the lock wait of an actor, if it waits."""
        with self._mutex, self._whole:
            self._wake(self._waiting.get(actor), _Wake.CANCELED)

    def waits_for(self) -> dict[int, set[int]]:
        with self._mutex:
            return {actor: set(self._waited_for(actor)) for actor in self._waiting}

    def wait_of(self, actor: int) -> tuple[LockMode, KeyHash] | None:
        with self._mutex:
            waiter = self._waiting.get(actor)
            return None if waiter is None else (waiter.strength, waiter.key)

    def end(self) -> None:
        """The epoch has ended, and with it every lock."""
        with self._mutex:
            self._ended = True
            for waiter in list(self._waiting.values()):
                self._wake(waiter, _Wake.ENDED)

    @property
    def has_ended(self) -> bool:
        return self._ended

    @property
    def waiting(self) -> int:
        """The number of transactions that wait now."""
        return len(self._waiting)

    def __len__(self) -> int:
        return len(self._locks)

    # The following require the mutex.

    def _blockers(self, lock: _Lock, waiter: _Waiter) -> Iterator[int]:
        """The actors that a request waits for: conflicting holders and, unless the actor holds the lock in some mode
        already, earlier waiters."""
        return (owner.actor for owner in self._blocking(lock, waiter))

    def _blocking(self, lock: _Lock, waiter: _Waiter) -> Iterator[LockOwner]:
        conflicting, mine = CONFLICTS[waiter.strength], waiter.owner.actor
        yield from (o for o, s in lock.holders.items() if o.actor != mine and s in conflicting)
        if _has_part(lock, mine):
            return
        for earlier in lock.queue:
            if earlier is waiter:
                return
            if earlier.strength in conflicting:
                yield earlier.owner

    def _holders_against(self, lock: _Lock, waiter: _Waiter) -> Iterator[int]:
        conflicting, mine = CONFLICTS[waiter.strength], waiter.owner.actor
        return (o.actor for o, s in lock.holders.items() if o.actor != mine and s in conflicting)

    def _enqueue(self, lock: _Lock, waiter: _Waiter) -> None:
        # A lock upgrade goes first: the waiters in the queue wait for its holder anyway.
        if _has_part(lock, waiter.owner.actor):
            lock.queue.appendleft(waiter)
        else:
            lock.queue.append(waiter)
        self._waiting[waiter.owner.actor] = waiter
        while waiter.wake is None and (cycle := self._find_cycle(waiter.owner.actor)):
            if self._serve_first(cycle):
                continue
            problem = errors.DeadlockDetected(self._describe_cycle(cycle))
            self._forget(waiter)
            raise problem
        self.waits += 1

    def _serve_first(self, cycle: Sequence[int]) -> bool:
        """Whether a cycle runs through the order of a queue: then who waits for no holder in it goes first, once."""
        for actor, blocker in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            waiter = self._waiting[actor]
            lock = self._locks[waiter.key]
            if not waiter.is_moved and blocker not in self._holders_against(lock, waiter):
                waiter.is_moved = True
                lock.queue.remove(waiter)
                lock.queue.appendleft(waiter)
                self._pass_on(waiter.key, lock)
                return True
        return False

    def _find_cycle(self, start: int) -> list[int]:
        """The actors of a cycle, beginning with `start`. A cycle is closed by its last wait, so it is enough to search
        from there."""
        came_from: dict[int, int] = {}
        stack = [(start, other) for other in self._waited_for(start)]
        while stack:
            before, actor = stack.pop()
            if actor == start:
                path = [before]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if actor not in came_from:
                came_from[actor] = before
                stack += [(actor, other) for other in self._waited_for(actor)]
        return []

    def _describe_cycle(self, cycle: Sequence[int]) -> str:
        following = (*cycle[1:], cycle[0])
        waits = [(self._waiting[actor], blocker) for actor, blocker in zip(cycle, following, strict=True)]
        described = [DescribedWait(str(w.owner.actor), w.strength, w.key, str(blocker)) for w, blocker in waits]
        return describe_cycle(described, self._describe)

    def _holders_of(self, lock: _Lock, waiter: _Waiter) -> str:
        conflicting, mine = CONFLICTS[waiter.strength], waiter.owner.actor
        held = [str(o.actor) for o, strength in lock.holders.items() if o.actor != mine and strength in conflicting]
        return describe_holders(held, [str(waits.owner.actor) for waits in lock.queue if waits.owner.actor != mine])

    def _waited_for(self, actor: int) -> Iterable[int]:
        waiter = self._waiting.get(actor)
        return () if waiter is None else self._blockers(self._locks[waiter.key], waiter)

    def _grant(self, lock: _Lock, waiter: _Waiter) -> None:
        # First: a key that is held here and by no lock is released without effect.
        self._held.setdefault(waiter.owner, set()).add(waiter.key)
        held = lock.holders.get(waiter.owner)
        lock.holders[waiter.owner] = waiter.strength if held is None else max(held, waiter.strength)

    def _give_up(self, owner: LockOwner, key: KeyHash) -> None:
        lock = self._locks[key]
        lock.holders.pop(owner, None)
        self._pass_on(key, lock)

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
        del self._waiting[waiter.owner.actor]
        lock = self._locks[waiter.key]
        lock.queue.remove(waiter)
        if waiter.wake is not _Wake.GRANTED:
            # Waiters behind it may be grantable now.
            self._pass_on(waiter.key, lock)

    # Waiting, outside the mutex.

    def _await(self, waiter: _Waiter, timeout_ms: int, watch: LongWaits | None) -> None:
        timeout_s = timeout_ms / 1_000 if timeout_ms else None
        try:
            if watch is None:
                waiter.signal.wait(timeout_s)
            else:
                self._await_watched(waiter, timeout_s, watch)
        finally:
            with self._mutex, self._whole:
                holders = self._holders_of(self._locks[waiter.key], waiter) if waiter.wake is None else None
                # No effect on a waiter that has just been woken.
                self._wake(waiter, _Wake.OUT_OF_TIME)
        match waiter.wake:
            case _Wake.OUT_OF_TIME:
                raise errors.LockTimeout(holders)
            case _Wake.CANCELED:
                raise errors.QueryCanceled(reason="user request")
            case _Wake.ENDED:
                raise errors.StaleNode(node=self._epoch)
            case _:
                return

    def _await_watched(self, waiter: _Waiter, timeout_s: float | None, watch: LongWaits) -> None:
        left_s, pause_s = inf if timeout_s is None else timeout_s, LONG_WAIT_S
        if waiter.signal.wait(min(left_s, pause_s)):
            return
        long = watch.begin(waiter.owner)
        try:
            while (left_s := left_s - pause_s) > 0:
                with self._mutex:
                    if waiter.wake is not None:
                        return
                    blockers = frozenset(self._blocking(self._locks[waiter.key], waiter))
                pause_s = long.look(blockers)
                if waiter.signal.wait(min(left_s, pause_s)):
                    return
        finally:
            long.end()


def _has_part(lock: _Lock, actor: int) -> bool:
    return any(owner.actor == actor for owner in lock.holders)
