"""Group commit: few catalog transactions for many commits, each answered for itself."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Any, cast

import pytest

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.engine.node.node import Node
from seachange.engine.replica.committer import BATCH_MAX, GATHER_US_MAX, GroupCommitter, Submission
from seachange.model.ids import CommitId, Epoch, Seq
from seachange.model.log import CommitRequest, Committed, Conflict, Outcome
from seachange.runtime.clock import SYSTEM_CLOCK
from tests.engine.database import create, rows
from tests.engine.threads import together
from tests.support.patience import PATIENCE_S


class HeldCatalog:
    """Counts commits; the first waits until the test lets it go, and `decide` chooses how the others end."""

    def __init__(self, decide: Callable[[CommitRequest], Outcome | None] = lambda _: None) -> None:
        self.batches: list[int] = []
        self.entered = Event()
        self.go = Event()
        self._decide = decide
        self._seq = 0

    def commit(self, epoch: Epoch, requests: Sequence[CommitRequest]) -> tuple[Outcome, ...]:
        self.entered.set()
        assert self.go.wait(PATIENCE_S)
        self.batches.append(len(requests))
        return tuple(self._decide(request) or self._accept() for request in requests)

    def _accept(self) -> Committed:
        self._seq += 1
        return Committed(Seq(self._seq), 0)


def submission(number: int) -> Submission:
    return Submission(CommitRequest(CommitId(number.to_bytes(16)), Seq(0), Seq(0)))


def submit_behind_one(committer: GroupCommitter, catalog: HeldCatalog, count: int) -> list[Any]:
    """Submits one, then `count` more while the catalog is busy with the first; gives how each ended."""
    ended: list[Any] = [None] * (count + 1)

    def run(number: int) -> None:
        try:
            ended[number] = committer.submit(submission(number))
        except errors.Error as problem:
            ended[number] = problem

    threads = [Thread(target=run, args=(number,)) for number in range(count + 1)]
    threads[0].start()
    assert catalog.entered.wait(PATIENCE_S)
    for thread in threads[1:]:
        thread.start()
    with committer._arrival:
        assert committer._arrival.wait_for(lambda: len(committer._waiting) == count, 30)
    catalog.go.set()
    for thread in threads:
        thread.join()
    return ended


def committer_over(catalog: HeldCatalog) -> GroupCommitter:
    return GroupCommitter(cast(Catalog, catalog), Epoch(1), SYSTEM_CLOCK, lambda _: None)


def test_waiting_commits_are_sent_as_one_batch():
    catalog = HeldCatalog()
    committer = committer_over(catalog)
    ended = submit_behind_one(committer, catalog, 20)
    assert catalog.batches == [1, 20]
    assert (committer.commits, committer.catalog_commits) == (21, 2)
    assert sorted(outcome.seq for outcome in ended) == list(range(1, 22))


def test_more_than_a_batch_can_wait():
    catalog = HeldCatalog()
    ended = submit_behind_one(committer_over(catalog), catalog, 3 * BATCH_MAX + 5)
    assert all(isinstance(outcome, Committed) for outcome in ended)
    assert sum(catalog.batches) == 3 * BATCH_MAX + 6
    assert max(catalog.batches) == BATCH_MAX


def test_a_leader_goes_on_until_its_own_turn():
    """Locks are not fair: a whole batch may be ahead of the leader."""
    catalog = HeldCatalog()
    catalog.go.set()
    committer = committer_over(catalog)
    committer._waiting.extend(submission(number) for number in range(BATCH_MAX))
    assert committer.submit(submission(BATCH_MAX)) == Committed(Seq(BATCH_MAX + 1), 0)


def test_a_refusal_concerns_its_own_member():
    seventh = CommitId((7).to_bytes(16))
    catalog = HeldCatalog(lambda request: Conflict(Seq(1)) if request.commit_id == seventh else None)
    ended = submit_behind_one(committer_over(catalog), catalog, 10)
    assert ended[7] == Conflict(Seq(1))
    assert all(isinstance(outcome, Committed) for number, outcome in enumerate(ended) if number != 7)


def test_a_failure_reaches_every_member():
    def fail(request: CommitRequest) -> Outcome:
        raise errors.CatalogUnavailable(catalog="here", detail="gone")

    catalog = HeldCatalog(fail)
    ended = submit_behind_one(committer_over(catalog), catalog, 5)
    assert all(isinstance(problem, errors.CatalogUnavailable) for problem in ended)


def test_a_decided_commit_stays_decided_when_it_cannot_be_applied():
    """If a refusal were reported, the client would commit a second time."""
    catalog = HeldCatalog()
    catalog.go.set()

    def apply(batch: Sequence[Submission]) -> None:
        raise errors.StaleNode(node=1)

    committer = GroupCommitter(cast(Catalog, catalog), Epoch(1), SYSTEM_CLOCK, apply)
    assert committer.submit(submission(0)) == Committed(Seq(1), 0)


def test_sessions_of_a_node_commit_together(node: Node):
    create(node)
    before = node.statistics()
    each = 20

    def write(session: int) -> None:
        for number in range(each):
            txn = node.begin()
            txn.writes.insert(txn.schema.table(None, "t"), [(session * each + number, "x", 0)])
            txn.commit()

    together(*[lambda s=s: write(s) for s in range(8)])
    after = node.statistics()
    assert after["commits"] - before["commits"] == 8 * each
    assert after["catalog_commits"] - before["catalog_commits"] < 8 * each
    assert len(rows(node)) == 8 * each


def test_a_conflict_within_a_group_refuses_one(node: Node):
    create(node)
    ends = []

    def write(session: int) -> None:
        for number in range(10):
            txn = node.begin()
            txn.writes.insert(txn.schema.table(None, "t"), [(number, f"session {session}", 0)])
            try:
                txn.commit()
                ends.append(number)
            except errors.SerializationFailure:
                pass

    def attempt(session: int) -> None:
        # One that begins after the other has committed gets the error at once.
        with suppress(errors.UniqueViolation):
            write(session)

    together(*[lambda s=s: attempt(s) for s in range(6)])
    assert len(ends) == len(set(ends)) == len(rows(node))


@pytest.mark.parametrize("count", [2, 5])
def test_members_of_one_batch_are_checked_against_each_other(node: Node, count: int):
    create(node)
    writers = [node.begin() for _ in range(count)]
    for number, writer in enumerate(writers):
        writer.writes.insert(writer.schema.table(None, "t"), [(1, f"writer {number}", number)])

    def commit(writer: Any) -> bool:
        try:
            return writer.commit() is not None
        except errors.SerializationFailure:
            return False

    assert sum(together(*[lambda w=w: commit(w) for w in writers])) == 1
    assert len(rows(node)) == 1


def test_a_leader_waits_for_the_sessions_of_the_last_batches_until_its_time_is_up():
    catalog = HeldCatalog()
    committer = committer_over(catalog)
    submit_behind_one(committer, catalog, 20)
    committer._waiting.append(submission(21))
    due_us = committer.step(5_000)
    assert due_us == 5_000 + GATHER_US_MAX
    assert committer.step(due_us - 1) == due_us
    assert catalog.batches == [1, 20]
    committer.step(due_us)
    assert catalog.batches == [1, 20, 1]
