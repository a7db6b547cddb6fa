"""Locks between nodes: grants, waits, and commits that a lock blocks."""

import pytest

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.ids import Epoch, KeyHash
from seachange.model.locking import (
    CONFLICTS,
    NO_GUARD,
    LockMode,
    LockOwner,
    LockPolicy,
    LockStrength,
    LockWish,
    QueueMode,
    TableLock,
)
from seachange.model.log import CommitBlocked, Committed, Conflict
from tests.catalog.builders import accept, publish, register, request, submit

WAIT, NOWAIT, SKIP = LockPolicy.WAIT, LockPolicy.NOWAIT, LockPolicy.SKIP
KEY_SHARE, SHARE, NO_KEY_UPDATE, UPDATE = LockStrength
ONE, TWO, THREE = LockOwner(1, 0), LockOwner(2, 0), LockOwner(3, 0)
MANY = 1_000


def wish(key: int, strength: LockMode = UPDATE, guard: int | None = None) -> LockWish:
    return LockWish(KeyHash(key), strength, KeyHash(key if guard is None else guard))


def take(
    catalog: Catalog, epoch: Epoch, owner: LockOwner, *wishes: LockWish, policy: LockPolicy = SKIP, most: int = MANY
) -> tuple[bool, ...]:
    return catalog.take_locks(epoch, owner, wishes, policy, most).granted


def test_modes_conflict_both_ways():
    assert all((one in CONFLICTS[other]) == (other in CONFLICTS[one]) for one in CONFLICTS for other in CONFLICTS)


@pytest.mark.parametrize("kind", [LockStrength, TableLock])
def test_a_lock_excludes_what_conflicts_with_it(catalog: Catalog, kind: type[LockMode]):
    here, there = register(catalog), register(catalog)
    pairs = [(held, wanted) for held in kind for wanted in kind]
    for key, (held, wanted) in enumerate(pairs):
        assert take(catalog, here, ONE, wish(key, held)) == (True,)
        free = held not in CONFLICTS[wanted]
        assert take(catalog, there, ONE, wish(key, wanted)) == (free,), (held, wanted)
        # Two sessions of a node are two.
        assert take(catalog, here, TWO, wish(key, wanted)) == (free and wanted not in CONFLICTS[wanted],)


def test_an_actor_never_waits_for_itself(catalog: Catalog):
    epoch = register(catalog)
    take(catalog, epoch, ONE, wish(1, SHARE))
    assert take(catalog, epoch, LockOwner(1, 9), wish(1, UPDATE)) == (True,)
    assert take(catalog, epoch, TWO, wish(1, SHARE)) == (False,)
    catalog.release_locks(epoch, LockOwner(1, 9))
    assert take(catalog, epoch, TWO, wish(1, SHARE)) == (True,)


def test_a_lock_is_strengthened_and_never_weakened(catalog: Catalog):
    epoch = register(catalog)
    take(catalog, epoch, ONE, wish(1, UPDATE))
    take(catalog, epoch, ONE, wish(1, SHARE))
    assert take(catalog, epoch, TWO, wish(1, SHARE)) == (False,)


def test_each_policy_decides_what_happens_at_a_held_key(catalog: Catalog):
    epoch = register(catalog)
    take(catalog, epoch, ONE, wish(2))
    wishes = [wish(1), wish(2), wish(3), wish(4)]
    assert take(catalog, epoch, TWO, *wishes, most=2) == (True, False, True)
    assert take(catalog, epoch, THREE, wish(5), wish(2), wish(6), policy=NOWAIT) == (True, False)
    assert not catalog.lock_queues().waits
    assert take(catalog, epoch, THREE, wish(6), wish(2), wish(7), policy=WAIT) == (True, False)
    queues = catalog.lock_queues()
    assert [(w.key, w.epoch, w.actor, w.strength) for w in queues.waits] == [(2, epoch, 3, UPDATE)]
    assert [(h.key, h.epoch, h.actor, h.strength) for h in queues.held] == [(2, epoch, 1, UPDATE)]


def test_waiters_go_in_turn_and_keep_it(catalog: Catalog):
    here, there = register(catalog), register(catalog)
    take(catalog, here, ONE, wish(1))
    for _ in range(2):
        assert take(catalog, here, TWO, wish(1), policy=WAIT) == (False,)
        assert take(catalog, there, THREE, wish(1), policy=WAIT) == (False,)
    assert [w.actor for w in catalog.lock_queues().waits] == [2, 3]
    catalog.release_locks(here, ONE)
    # Neither the second in the queue nor one who is not in it overtakes the first.
    assert take(catalog, there, THREE, wish(1), policy=WAIT) == (False,)
    assert take(catalog, there, ONE, wish(1)) == (False,)
    assert take(catalog, here, TWO, wish(1), policy=WAIT) == (True,)
    assert [w.actor for w in catalog.lock_queues().waits] == [3]
    catalog.release_locks(here, TWO)
    assert take(catalog, there, THREE, wish(1), policy=WAIT) == (True,)
    assert not catalog.lock_queues().waits


@pytest.mark.parametrize("kind", [(UPDATE, SHARE), (TableLock.EXCLUSIVE, TableLock.ROW_SHARE)])
def test_a_wait_that_is_served_first(catalog: Catalog, kind: tuple[LockMode, LockMode]):
    strong, weak = kind
    epoch = register(catalog)
    take(catalog, epoch, ONE, wish(1, weak))
    assert take(catalog, epoch, TWO, wish(1, strong), policy=WAIT) == (False,)
    assert take(catalog, epoch, THREE, wish(1, weak), policy=WAIT) == (False,)
    last = catalog.lock_queues().waits[-1]
    assert last.actor == THREE.actor
    catalog.serve_first(last)
    # Once is enough: the wait has another turn by now.
    catalog.serve_first(last)
    assert [wait.actor for wait in catalog.lock_queues().waits] == [THREE.actor, TWO.actor]
    assert [wait.actor for wait in catalog.table_locks().waits] == [3, 2] * (strong > UPDATE)
    assert take(catalog, epoch, THREE, wish(1, weak), policy=WAIT) == (True,)
    # Those who come later stand behind it all the same.
    assert take(catalog, epoch, LockOwner(4, 0), wish(1, weak), policy=WAIT) == (False,)
    assert [wait.actor for wait in catalog.lock_queues().waits] == [2, 4]


def test_wait_for_something_other_than_a_lock(catalog: Catalog):
    epoch = register(catalog)
    catalog.enter_queue(epoch, ONE, wish(1, QueueMode.JOB))
    catalog.enter_queue(epoch, ONE, wish(2, QueueMode.JOB))
    # It refuses nothing.
    assert take(catalog, epoch, TWO, wish(2, QueueMode.RUNS)) == (True,)
    queues = catalog.lock_queues()
    assert [(wait.key, wait.actor, wait.strength) for wait in queues.waits] == [(2, 1, QueueMode.JOB)]
    assert [(held.key, held.actor, held.strength) for held in queues.held] == [(2, 2, QueueMode.RUNS)]
    catalog.release_locks(epoch, ONE, ())
    assert not catalog.lock_queues().waits
    catalog.end_node(epoch)
    with pytest.raises(errors.StaleNode):
        catalog.enter_queue(epoch, ONE, wish(1, QueueMode.JOB))


def test_lock_upgrade_goes_first(catalog: Catalog):
    epoch = register(catalog)
    take(catalog, epoch, ONE, wish(1, SHARE))
    take(catalog, epoch, TWO, wish(1, UPDATE), policy=WAIT)
    assert take(catalog, epoch, ONE, wish(1, UPDATE)) == (True,)


def test_keys_are_given_up_one_by_one_or_all(catalog: Catalog):
    epoch = register(catalog)
    take(catalog, epoch, ONE, wish(1), wish(2), wish(3))
    catalog.release_locks(epoch, ONE, [KeyHash(2)])
    assert take(catalog, epoch, TWO, wish(1), wish(2), wish(3)) == (False, True, False)
    catalog.release_locks(epoch, ONE)
    assert take(catalog, epoch, TWO, wish(1), wish(3)) == (True, True)


def test_locks_end_with_the_epoch(catalog: Catalog):
    here, there = register(catalog), register(catalog)
    take(catalog, here, ONE, wish(1), wish(2))
    take(catalog, there, ONE, wish(3))
    take(catalog, here, TWO, wish(3), policy=WAIT)
    assert take(catalog, there, ONE, wish(1)) == (False,)
    catalog.end_node(here)
    assert take(catalog, there, ONE, wish(1)) == (True,)
    assert not catalog.lock_queues().waits
    with pytest.raises(errors.StaleNode):
        take(catalog, here, ONE, wish(5))


def test_locks_end_when_the_epoch_expires(catalog: Catalog):
    short, there = catalog.register_node("short", 0), register(catalog)
    take(catalog, short, ONE, wish(1))
    while short not in catalog.expire_nodes():
        pass
    assert take(catalog, there, ONE, wish(1)) == (True,)


def test_lock_blocks_commits_of_others(catalog: Catalog):
    here, there = register(catalog), register(catalog)
    take(catalog, here, ONE, wish(10))
    head = catalog.head()
    assert submit(catalog, there, request(head, writes=[9, 10], actor=1)) == CommitBlocked(KeyHash(10), NO_KEY_UPDATE)
    assert submit(catalog, here, request(head, writes=[10], actor=2)) == CommitBlocked(KeyHash(10), NO_KEY_UPDATE)
    assert isinstance(submit(catalog, there, request(head, writes=[11])), Committed)
    assert isinstance(submit(catalog, here, request(head, writes=[10], actor=1)), Committed)
    catalog.release_locks(here, ONE)
    assert isinstance(submit(catalog, there, request(catalog.head(), writes=[10], actor=1)), Committed)


def test_lock_blocks_large_commits_of_others(catalog: Catalog):
    here, there = register(catalog), register(catalog)
    take(catalog, here, ONE, wish(4_999), wish(9_000))
    many = request(catalog.head(), writes=range(5_000), actor=1)
    assert submit(catalog, there, many) == CommitBlocked(KeyHash(4_999), NO_KEY_UPDATE)
    assert isinstance(submit(catalog, here, many), Committed)


def test_a_conflict_comes_before_a_lock(catalog: Catalog):
    here, there = register(catalog), register(catalog)
    head = catalog.head()
    accept(catalog, here, writes=[10])
    take(catalog, here, ONE, wish(10))
    assert isinstance(submit(catalog, there, request(head, writes=[10])), Conflict)


def test_a_locked_key_lets_other_columns_change(catalog: Catalog):
    here, there = register(catalog), register(catalog)
    take(catalog, here, ONE, wish(10, KEY_SHARE, guard=20))
    accept(catalog, there, writes=[10])
    outcome = submit(catalog, there, request(catalog.head(), writes=[10, 20]))
    assert outcome == CommitBlocked(KeyHash(10), UPDATE)


def test_the_members_of_a_batch_meet_locks_each_for_itself(catalog: Catalog):
    here, there = register(catalog), register(catalog)
    take(catalog, here, ONE, wish(10))
    head = catalog.head()
    outcomes = catalog.commit(there, [request(head, writes=[n]) for n in (9, 10, 11)])
    assert [type(outcome) for outcome in outcomes] == [Committed, CommitBlocked, Committed]


def test_the_head_is_that_of_the_grant(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, writes=[1])
    assert catalog.take_locks(epoch, ONE, [wish(1)], WAIT, MANY).head == catalog.head()


def test_table_lock_blocks_commits_to_the_table(catalog: Catalog):
    here, there = register(catalog), register(catalog)
    accept(catalog, here, descriptors=(publish(5, 0, 1, "t", (50, 51)), publish(6, 0, 1, "u", (60,))))
    take(catalog, here, ONE, wish(1, TableLock.SHARE, guard=5), wish(2, TableLock.ROW_SHARE, guard=NO_GUARD))
    head = catalog.head()
    refused = CommitBlocked(KeyHash(1), TableLock.ROW_EXCLUSIVE)
    assert submit(catalog, there, request(head, touched=[60, 51], actor=1)) == refused
    assert submit(catalog, here, request(head, touched=[50], actor=2)) == refused
    accepted = [
        submit(catalog, there, request(head, touched=[60], actor=1)),
        submit(catalog, here, request(head, touched=[50], actor=1)),
        # A hash that is the table's number is none of its rows, but may wait as well.
        submit(catalog, there, request(head, writes=[1], actor=1)),
    ]
    assert all(isinstance(outcome, Committed) for outcome in accepted)
    catalog.release_locks(here, ONE)
    accept(catalog, there, touched=[50], actor=1)


def test_a_request_waits_in_the_queue_until_it_is_granted(catalog: Catalog):
    here, there = register(catalog), register(catalog)
    strong = wish(1, TableLock.SHARE, guard=5)
    first = catalog.request_lock(here, ONE, strong)
    assert catalog.request_lock(there, TWO, wish(2, TableLock.SHARE)) == first + 1
    known = catalog.table_locks()
    assert (known.requests, [w.strength for w in known.waits]) == (first + 1, [TableLock.SHARE] * 2)
    # It is in turn already: a writer of another node waits behind it.
    assert take(catalog, there, ONE, wish(1, TableLock.ROW_EXCLUSIVE)) == (False,)
    # But one that was there before it has its lock, whatever was asked for since.
    writer = wish(1, TableLock.ROW_EXCLUSIVE, guard=NO_GUARD)
    catalog.answer_requests(there, first + 1, [(LockOwner(7, 70), writer)])
    assert {node.epoch: node.answered for node in catalog.nodes()} == {here: 0, there: first + 1}
    assert take(catalog, here, ONE, strong, policy=WAIT) == (False,)
    catalog.release_locks(there, LockOwner(7, 70))
    assert take(catalog, here, ONE, strong, policy=WAIT) == (True,)
    known = catalog.table_locks()
    assert [(held.key, held.epoch, held.actor, held.strength) for held in known.held] == [(1, here, 1, TableLock.SHARE)]
    catalog.end_node(here)
    with pytest.raises(errors.StaleNode):
        catalog.request_lock(here, ONE, strong)
    with pytest.raises(errors.StaleNode):
        catalog.answer_requests(here, 1, ())


def test_what_was_read_conflicts_with_earlier_writes_alone(catalog: Catalog):
    epoch = register(catalog)
    head = catalog.head()
    accept(catalog, epoch, writes=[10])
    assert isinstance(submit(catalog, epoch, request(head, reads=(KeyHash(10),))), Conflict)
    head = catalog.head()
    accept(catalog, epoch, reads=(KeyHash(10),))
    assert isinstance(submit(catalog, epoch, request(head, writes=[10])), Committed)


def test_a_commit_releases_the_scopes_that_it_names(catalog: Catalog):
    epoch = register(catalog)
    first, second = LockOwner(1, 1), LockOwner(1, 2)
    take(catalog, epoch, first, wish(1))
    take(catalog, epoch, second, wish(2))
    take(catalog, epoch, LockOwner(2, 1), wish(3))
    blocked = request(catalog.head(), writes=(3,), actor=1, scopes=(1,))
    assert isinstance(submit(catalog, epoch, blocked), CommitBlocked)
    assert take(catalog, epoch, TWO, wish(1)) == (False,)
    accept(catalog, epoch, writes=(1,), actor=1, scopes=(1,))
    assert take(catalog, epoch, TWO, wish(1), wish(2)) == (True, False)
    # A scope of the same number belongs to another actor.
    assert take(catalog, epoch, THREE, wish(3)) == (False,)
