"""Who waits for whom between nodes, from values."""

from collections.abc import Mapping, Set

import pytest

from seachange.engine.locks.lock_graph import (
    Party,
    blockers,
    find_cycle,
    find_edges,
    find_overtaker,
    find_reached,
    find_victim,
)
from seachange.model.ids import Epoch, KeyHash
from seachange.model.locking import LockHeld, LockQueues, LockStrength, LockWait, QueueMode

UPDATE, SHARE = LockStrength.UPDATE, LockStrength.SHARE


def party(name: str) -> Party:
    """Of "2b": actor b of epoch 2."""
    return Party(Epoch(int(name[0])), ord(name[1]))


def queues(held: str, waits: str) -> LockQueues:
    """`held` as "1a:x 2b:y", `waits` the same, in turn; a key in capitals is shared."""

    def read(text: str) -> list[tuple[Party, KeyHash, LockStrength]]:
        pairs = [item.split(":") for item in text.split()]
        return [(party(p), KeyHash(ord(k.lower())), SHARE if k.isupper() else UPDATE) for p, k in pairs]

    return LockQueues(
        tuple(LockHeld(key, *who, strength) for who, key, strength in read(held)),
        tuple(LockWait(turn, key, *who, strength) for turn, (who, key, strength) in enumerate(read(waits))),
    )


@pytest.mark.parametrize(
    ("held", "waits", "expected"),
    [
        ("1a:x", "2b:x", {"1a"}),
        # Who came first comes first, unless the two could go together.
        ("1a:x", "3c:x 2b:x", {"1a", "3c"}),
        ("1a:x", "3c:X 2b:X", {"1a"}),
        # Who comes later does not matter.
        ("1a:x", "2b:x 3c:x", {"1a"}),
        # Nor does another key.
        ("1a:x 3c:y", "2b:x", {"1a"}),
        # Who has a part of the lock goes before the queue.
        ("1a:X 2b:X", "3c:x 2b:x", {"1a"}),
        ("2b:X", "3c:x 2b:x", set()),
    ],
)
def test_blockers_are_holders_and_earlier_waiters_that_conflict(held: str, waits: str, expected: set[str]):
    found = queues(held, waits)
    (mine,) = [wait for wait in found.waits if (wait.epoch, wait.actor) == party("2b")]
    assert blockers(found, mine) == {party(name) for name in expected}


@pytest.mark.parametrize(
    ("held", "waits", "local", "victim"),
    [
        # No cycle.
        ("1a:x 2b:y", "1a:y", {}, None),
        # Two nodes; the last one is the victim, on whichever node the cycle is found.
        ("1a:x 2b:y", "1a:y 2b:x", {}, "2b"),
        ("1a:x 2b:y", "2b:x 1a:y", {}, "1a"),
        # Three of them, one through the queue: c waits for a because it stands behind it.
        ("1a:x 2b:y 3c:z", "1a:y 2b:z 3c:x", {}, "3c"),
        # Through a wait that only node 1 knows of: b of node 1 waits for a inside it.
        ("2c:x 1b:y", "1a:x 2c:y", {"b": "a"}, ""),
        # Once it is published, as a wait for a key that a holds.
        ("2c:x 1b:y 1a:w", "1a:x 2c:y 1b:w", {"b": "a"}, "1b"),
        # A wait of the node that closes no cycle.
        ("2c:x", "1a:x", {"b": "a"}, None),
    ],
)
def test_a_cycle_has_the_expected_victim(held: str, waits: str, local: Mapping[str, str], victim: str | None):
    found = queues(held, waits)
    inside: dict[int, Set[int]] = {ord(actor): {ord(other)} for actor, other in local.items()}
    me = party("1a")
    cycle = find_cycle(found, inside, me)
    assert (cycle is None) == (victim is None)
    if cycle is not None:
        assert find_victim(found, cycle) == (party(victim) if victim else None)


def test_all_nodes_choose_the_same_victim():
    found = queues("1a:x 2b:y 3c:z", "3c:x 1a:y 2b:z")
    chosen = set()
    for name in ("1a", "2b", "3c"):
        cycle = find_cycle(found, {}, party(name))
        assert cycle is not None
        chosen.add(find_victim(found, cycle))
    assert chosen == {party("2b")}


@pytest.mark.parametrize(
    ("held", "waits", "overtaker"),
    [
        # All wait for holders.
        ("1a:x 2b:y", "1a:y 2b:x", None),
        # c could share x with a, but b came first, which waits for a; and a waits for c.
        ("1a:X 3c:y", "2b:x 3c:X 1a:y", "3c"),
        # It holds no part of x, and would have to wait for a anyway.
        ("1a:x 3c:y", "2b:x 3c:X 1a:y", None),
    ],
)
def test_who_goes_first_to_end_a_cycle(held: str, waits: str, overtaker: str | None):
    found = queues(held, waits)
    cycle = find_cycle(found, {}, party("1a"))
    assert cycle is not None
    chosen = find_overtaker(found, cycle, set())
    assert (None if chosen is None else Party(chosen.epoch, chosen.actor)) == (overtaker and party(overtaker))
    assert overtaker is None or find_overtaker(found, cycle, {party(overtaker)}) is None


def test_session_behind_a_job_gives_way_although_it_came_first():
    job, row = KeyHash(1), KeyHash(2)
    behind, runner = party("1a"), party("2b")
    found = LockQueues(
        (LockHeld(job, *runner, QueueMode.RUNS), LockHeld(row, *behind, UPDATE)),
        (LockWait(1, job, *behind, QueueMode.JOB), LockWait(2, row, *runner, UPDATE)),
    )
    cycle = find_cycle(found, {}, runner)
    assert cycle is not None
    assert find_victim(found, cycle) == behind


def test_reached_are_all_that_are_waited_for():
    edges = find_edges(queues("1b:x 2c:y", "1a:x 1b:y 3d:x"), {ord("e"): {ord("a")}}, Epoch(1))
    assert find_reached(edges, party("1e")) == {party(name) for name in ("1e", "1a", "1b", "2c")}


def test_a_long_way_round_is_found():
    length = 200
    me = Party(Epoch(1), 0)
    held = tuple(LockHeld(KeyHash(n), Epoch(1), n, UPDATE) for n in range(length))
    waits = tuple(LockWait(n, KeyHash((n + 1) % length), Epoch(1), n, UPDATE) for n in range(length))
    assert find_cycle(LockQueues(held, waits[:-1]), {}, me) is None
    assert len(find_cycle(LockQueues(held, waits), {}, me) or ()) == length
