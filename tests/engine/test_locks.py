"""Key locks of a node: who waits for whom, and how a wait ends."""

import threading
from collections.abc import Callable

import pytest

from seachange import errors
from seachange.engine.locks.key_locks import LockTable
from seachange.model.ids import Epoch, KeyHash
from seachange.model.locking import CONFLICTS, LockOwner, LockPolicy, LockStrength
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

A, B = KeyHash(1), KeyHash(2)
UPDATE, SHARE = LockStrength.UPDATE, LockStrength.SHARE


class Waiting:
    """A request in a thread of its own."""

    def __init__(self, request: Callable[[], object], locks: LockTable) -> None:
        self.problem: errors.Error | None = None
        before = locks.waits
        self._thread = threading.Thread(target=self._run, args=(request,), daemon=True)
        self._thread.start()
        wait_until(lambda: locks.waits > before, "the request to wait")

    def _run(self, request: Callable[[], object]) -> None:
        try:
            request()
        except errors.Error as problem:
            self.problem = problem

    def ends(self) -> errors.Error | None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self.problem


def owner(actor: int) -> LockOwner:
    return LockOwner(actor, 0)


@pytest.fixture
def locks() -> LockTable:
    return LockTable(Epoch(1))


def test_the_conflicts_are_symmetric() -> None:
    for one, others in CONFLICTS.items():
        assert all(one in CONFLICTS[other] for other in others)


@pytest.mark.parametrize("held", LockStrength)
@pytest.mark.parametrize("wanted", LockStrength)
def test_a_lock_excludes_what_conflicts_with_it(locks: LockTable, held: LockStrength, wanted: LockStrength) -> None:
    locks.acquire(owner(1), A, held)
    assert locks.acquire(owner(2), A, wanted, LockPolicy.SKIP) is (held not in CONFLICTS[wanted])


def test_a_transaction_never_waits_for_itself(locks: LockTable) -> None:
    locks.acquire(owner(1), A, SHARE)
    assert locks.acquire(owner(1), A, UPDATE)
    assert not locks.acquire(owner(2), A, SHARE, LockPolicy.SKIP)


def test_the_end_of_the_holder_ends_the_wait(locks: LockTable) -> None:
    locks.acquire(owner(1), A, UPDATE)
    second = Waiting(lambda: locks.acquire(owner(2), A, UPDATE), locks)
    locks.release_all(owner(1))
    assert second.ends() is None
    locks.release_all(owner(2))
    assert not len(locks)


def test_waiters_go_in_turn(locks: LockTable) -> None:
    locks.acquire(owner(1), A, SHARE)
    writer = Waiting(lambda: locks.acquire(owner(2), A, UPDATE), locks)
    # A reader that came later does not overtake the writer, though the holder would let it.
    assert not locks.acquire(owner(3), A, SHARE, LockPolicy.SKIP)
    locks.release_all(owner(1))
    assert writer.ends() is None


def test_nowait_is_an_error(locks: LockTable) -> None:
    locks.acquire(owner(1), A, UPDATE)
    with pytest.raises(errors.LockNotAvailable) as caught:
        locks.acquire(owner(2), A, UPDATE, LockPolicy.NOWAIT)
    assert caught.value.sqlstate == "55P03"


def test_a_wait_ends_with_its_timeout(locks: LockTable) -> None:
    locks.acquire(owner(1), A, UPDATE)
    with pytest.raises(errors.LockNotAvailable):
        locks.acquire(owner(2), A, UPDATE, timeout_ms=1)
    locks.release_all(owner(1))
    assert locks.acquire(owner(3), A, UPDATE, LockPolicy.NOWAIT)


def test_who_closes_a_cycle_is_the_victim(locks: LockTable) -> None:
    locks.acquire(owner(1), A, UPDATE)
    locks.acquire(owner(2), B, UPDATE)
    first = Waiting(lambda: locks.acquire(owner(1), B, UPDATE), locks)
    with pytest.raises(errors.DeadlockDetected) as caught:
        locks.acquire(owner(2), A, UPDATE)
    assert caught.value.sqlstate == "40P01"
    locks.release_all(owner(2))
    assert first.ends() is None


def test_two_who_strengthen_a_shared_lock_are_a_cycle(locks: LockTable) -> None:
    locks.acquire(owner(1), A, SHARE)
    locks.acquire(owner(2), A, SHARE)
    first = Waiting(lambda: locks.acquire(owner(1), A, UPDATE), locks)
    with pytest.raises(errors.DeadlockDetected):
        locks.acquire(owner(2), A, UPDATE)
    locks.release_all(owner(2))
    assert first.ends() is None


@pytest.mark.parametrize("last", [1, 3])
def test_a_cycle_through_the_order_of_a_queue_has_no_victim(locks: LockTable, last: int) -> None:
    """3 could share A with 1, but stands behind 2; whichever closes the cycle, 3 goes first."""
    locks.acquire(owner(1), A, SHARE)
    locks.acquire(owner(3), B, UPDATE)
    second = Waiting(lambda: locks.acquire(owner(2), A, UPDATE), locks)
    requests = {1: lambda: locks.acquire(owner(1), B, UPDATE), 3: lambda: locks.acquire(owner(3), A, SHARE)}
    first, third = (Waiting(requests[n], locks) for n in ((3, 1) if last == 1 else (1, 3)))
    ended = {last: third, 4 - last: first}
    assert ended[3].ends() is None
    locks.release_all(owner(3))
    assert ended[1].ends() is None
    locks.release_all(owner(1))
    assert second.ends() is None


def test_a_cancelled_wait_leaves_the_queue(locks: LockTable) -> None:
    locks.acquire(owner(1), A, SHARE)
    writer = Waiting(lambda: locks.acquire(owner(2), A, UPDATE), locks)
    reader = Waiting(lambda: locks.acquire(owner(3), A, SHARE), locks)
    locks.cancel(2)
    assert isinstance(writer.ends(), errors.QueryCanceled)
    assert reader.ends() is None


def test_locks_end_with_the_epoch(locks: LockTable) -> None:
    locks.acquire(owner(1), A, UPDATE)
    second = Waiting(lambda: locks.acquire(owner(2), A, UPDATE), locks)
    locks.end()
    assert isinstance(second.ends(), errors.StaleNode)
    with pytest.raises(errors.StaleNode):
        locks.acquire(owner(3), B, UPDATE)
