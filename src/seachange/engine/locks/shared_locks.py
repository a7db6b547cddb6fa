"""Locks between nodes, through the catalog: explicit row locks, contended rows, and advisory locks.

Writes without contention take none: a commit that meets a lock of another transaction is refused by the catalog, waits
here, and is sent again.

**Invariant:** a wait ends: with the grant, with the end of the epoch that it waits for, with its timeout, with a
cancel, or as a deadlock victim. A waiter that stops waiting leaves the queue.

**Invariant:** locks are taken under the sequencer lock. So a commit that writes a locked key is either known to the
locker before it returns the row, or finds the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from seachange import errors
from seachange.catalog.dead_nodes import end_dead_nodes
from seachange.catalog.port import Catalog
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.locks.key_locks import LockTable
from seachange.engine.locks.lock_details import (
    DescribedWait,
    DescribeKey,
    describe_cycle,
    describe_holders,
    describe_key,
    name_party,
)
from seachange.engine.locks.lock_graph import Party, blockers, find_cycle, find_overtaker, find_victim, find_wait
from seachange.model.ids import Epoch, KeyHash, Seq
from seachange.model.locking import (
    CONFLICTS,
    NO_GUARD,
    LockOwner,
    LockPolicy,
    LockQueues,
    LocksTaken,
    LockWait,
    LockWish,
    QueueMode,
)
from seachange.runtime.clock import Clock

# The maximum number of locks per request: the sequencer is blocked while it handles one.
WISHES_MAX = 1_000
# Pauses between polls of the queue: growing from the first, at most the second during a short wait, then at most the
# third.
PAUSE_S_MIN, PAUSE_S_SHORT, PAUSE_S_MAX = 0.001, 0.004, 0.02
SHORT_WAIT_US = 100_000
# A killed process holds its locks until its epoch is ended.
EXPIRY_LOOK_US = 500_000
# The minimum time that other nodes get to answer, however short lock_timeout is.
ANSWER_US_MIN = 3_000_000
_MS = 1_000


class SharedLocks:
    def __init__(
        self, catalog: Catalog, epoch: Epoch, local: LockTable, clock: Clock, describe: DescribeKey = describe_key
    ) -> None:
        """`describe` returns the name of the object that a key belongs to."""
        self._describe = describe
        self._catalog = catalog
        self._epoch = epoch
        self._local = local
        self._clock = clock
        # Locks that could not be released because the catalog was not available.
        self._unreleased: list[tuple[int, tuple[int, ...]]] = []
        self.waits = 0

    def take(
        self,
        owner: LockOwner,
        wishes: Sequence[LockWish],
        policy: LockPolicy,
        interrupts: SessionInterrupts,
        timeout_ms: int = 0,
        most: int | None = None,
    ) -> LocksTaken:
        """Takes the locks in order; with SKIP at most `most`, with NOWAIT up to the first that is refused."""
        most = len(wishes) if most is None else most
        granted: list[bool] = []
        head = Seq(0)
        while len(granted) < len(wishes) and sum(granted) < most:
            interrupts.check()
            chunk = wishes[len(granted) : len(granted) + WISHES_MAX]
            taken = self._catalog.take_locks(self._epoch, owner, chunk, policy, most - sum(granted))
            head = taken.head
            if policy is LockPolicy.WAIT and not all(taken.granted):
                granted += taken.granted[:-1]
                self._wait(owner, interrupts, timeout_ms)
                continue
            granted += taken.granted
            if policy is LockPolicy.NOWAIT and not all(taken.granted):
                break
        return LocksTaken(head, tuple(granted))

    def take_strong(
        self,
        owner: LockOwner,
        wish: LockWish,
        policy: LockPolicy,
        interrupts: SessionInterrupts,
        timeout_ms: int,
        refresh: Callable[[], None],
    ) -> LocksTaken:
        """Takes a table lock that conflicts with the locks of ordinary statements, which nodes write to the catalog on
        request. `refresh` makes this node do so."""
        try:
            number = self._catalog.request_lock(self._epoch, owner, wish)
            refresh()
            self._await_answers(number, interrupts, timeout_ms)
            return self.take(owner, [wish], policy, interrupts, timeout_ms)
        except BaseException:
            with suppress(errors.OperationalError):
                self._catalog.release_locks(self._epoch, owner, ())
            raise

    def _await_answers(self, number: int, interrupts: SessionInterrupts, timeout_ms: int) -> None:
        """Waits until all nodes have answered. They answer whatever their sessions wait for, so no deadlock is possible
        here. The short time that it takes is not a lock wait; a killed node never answers and is expired."""
        patience_us = max(timeout_ms * _MS, ANSWER_US_MIN)
        begun_us = looked_us = self._clock.steady_us()
        pause_s = PAUSE_S_MIN
        while any(node.live and node.answered < number for node in self._catalog.nodes()):
            interrupts.pause(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)
            now_us = self._clock.steady_us()
            if timeout_ms and now_us - begun_us >= patience_us:
                silent = [str(n.epoch) for n in self._catalog.nodes() if n.live and n.answered < number]
                raise errors.LockTimeout(f"No answer from node {', '.join(silent)}.")
            if now_us - looked_us >= EXPIRY_LOOK_US:
                looked_us = now_us
                end_dead_nodes(self._catalog)

    def release(self, owner: LockOwner, key: KeyHash) -> None:
        self._catalog.release_locks(self._epoch, owner, (key,))

    def release_keys(self, owner: LockOwner, keys: Sequence[KeyHash]) -> None:
        self._catalog.release_locks(self._epoch, owner, keys)

    def release_all(self, owner: LockOwner) -> None:
        self.release_scopes(owner.actor, (owner.scope,))

    def release_scopes(self, actor: int, scopes: tuple[int, ...]) -> None:
        """Releases locks at the end of their scope. It never fails, since the end is already decided."""
        if self._local.has_ended:
            # The locks have ended with the epoch; the catalog may be closed.
            return
        try:
            self._catalog.release_scopes(self._epoch, actor, scopes)
        except errors.OperationalError:
            self._unreleased.append((actor, scopes))

    def release_left(self) -> None:
        """Retries the releases that failed while the catalog was not available."""
        while self._unreleased:
            self._catalog.release_scopes(self._epoch, *self._unreleased[-1])
            self._unreleased.pop()

    def _wait(self, owner: LockOwner, interrupts: SessionInterrupts, timeout_ms: int) -> None:
        """Waits until no other lock or earlier waiter blocks the actor."""
        self.waits += 1
        try:
            self._look_until_free(Party(self._epoch, owner.actor), interrupts, timeout_ms)
        except BaseException:
            with suppress(errors.OperationalError):
                self._catalog.release_locks(self._epoch, owner, ())
            raise

    @contextmanager
    def queued(self, owner: LockOwner, key: KeyHash, mode: QueueMode) -> Iterator[Callable[[], None]]:
        """A wait for something other than a lock is in the graph meanwhile. The function that is given is to be called
        from time to time: it raises DeadlockDetected if this wait is the victim of a cycle."""
        suspected: tuple[Party, ...] | None = None
        moved: set[Party] = set()

        def check() -> None:
            nonlocal suspected
            queues = self._catalog.lock_queues()
            suspected = self.judge(queues, Party(self._epoch, owner.actor), suspected, moved)

        try:
            self._catalog.enter_queue(self._epoch, owner, LockWish(key, mode, NO_GUARD))
            self.waits += 1
            yield check
        finally:
            with suppress(errors.OperationalError):
                self._catalog.release_locks(self._epoch, owner, ())

    def refused(self, wish: LockWish, owner: LockOwner) -> errors.LockRefused:
        """The error for a lock that would have to wait."""
        conflicting, me = CONFLICTS[wish.strength], Party(self._epoch, owner.actor)
        held = [lock for lock in self._catalog.lock_holders(wish.key) if lock.strength in conflicting]
        others = [party for lock in held if (party := Party(lock.epoch, lock.actor)) != me]
        holders = describe_holders(name_party(party, self._epoch) for party in others) if others else None
        return errors.LockRefused(self._describe(wish.key), holders)

    def _describe_blockers(self, queues: LockQueues, wait: LockWait) -> str:
        ahead = blockers(queues, wait)
        held = {Party(lock.epoch, lock.actor) for lock in queues.held if lock.key == wait.key} & ahead
        others = [Party(w.epoch, w.actor) for w in queues.waits if w.key == wait.key and w.turn != wait.turn]
        return describe_holders(
            (name_party(party, self._epoch) for party in held), [name_party(party, self._epoch) for party in others]
        )

    def _describe_cycle(self, queues: LockQueues, cycle: Sequence[Party]) -> str:
        described = []
        for party, blocker in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            wait = find_wait(queues, party)
            waits_for = self._local.wait_of(party.actor) if party.epoch == self._epoch else None
            if waits_for is None and wait is not None and blocker in blockers(queues, wait):
                waits_for = wait.strength, wait.key
            # A waiter within a node may have continued since.
            if waits_for is not None:
                names = name_party(party, self._epoch), name_party(blocker, self._epoch)
                described.append(DescribedWait(names[0], *waits_for, names[1]))
        return describe_cycle(described, self._describe)

    def judge(
        self, queues: LockQueues, me: Party, suspected: tuple[Party, ...] | None, moved: set[Party]
    ) -> tuple[Party, ...] | None:
        """Gives a cycle of waits through `me`. The node's own waits are not of the same moment as the queues: a cycle
        that is seen twice is ended."""
        cycle = find_cycle(queues, self._local.waits_for(), me)
        if cycle is not None and cycle == suspected:
            self._end_cycle(queues, cycle, me, moved)
        return cycle

    def _end_cycle(self, queues: LockQueues, cycle: tuple[Party, ...], me: Party, moved: set[Party]) -> None:
        """As PostgreSQL does: by another order of a queue if that helps, else by a victim. All who see the cycle do."""
        ahead = find_overtaker(queues, cycle, moved)
        if ahead is not None:
            moved.add(Party(ahead.epoch, ahead.actor))
            self._catalog.serve_first(ahead)
        elif find_victim(queues, cycle) == me:
            raise errors.DeadlockDetected(self._describe_cycle(queues, cycle))

    def _look_until_free(self, me: Party, interrupts: SessionInterrupts, timeout_ms: int) -> None:
        begun_us = looked_us = self._clock.steady_us()
        pause_s = PAUSE_S_MIN
        suspected: tuple[Party, ...] | None = None
        moved: set[Party] = set()
        while True:
            interrupts.pause(pause_s)
            is_short = self._clock.steady_us() - begun_us < SHORT_WAIT_US
            pause_s = min(2 * pause_s, PAUSE_S_SHORT if is_short else PAUSE_S_MAX)
            queues = self._catalog.lock_queues()
            wait = find_wait(queues, me)
            # Without a wait the epoch has ended, which the next call reports.
            if wait is None or not blockers(queues, wait):
                return
            suspected = self.judge(queues, me, suspected, moved)
            now_us = self._clock.steady_us()
            if timeout_ms and now_us - begun_us >= timeout_ms * _MS:
                raise errors.LockTimeout(self._describe_blockers(queues, wait))
            if now_us - looked_us >= EXPIRY_LOOK_US:
                looked_us = now_us
                end_dead_nodes(self._catalog)
