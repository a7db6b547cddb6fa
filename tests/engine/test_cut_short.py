"""A change of shared state that is cut short, by missing memory or Ctrl-C, is neither shown nor continued."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Thread
from typing import Any, cast

import pytest

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.engine.locks.key_locks import LockTable
from seachange.engine.node.node import Node
from seachange.engine.replica.committer import GroupCommitter, Submission
from seachange.engine.replica.registry import OpenWriter, Registry
from seachange.engine.session.session import Session
from seachange.model.ids import CommitId, Epoch, KeyHash, Seq
from seachange.model.isolation import Isolation
from seachange.model.locking import LockOwner, LockPolicy, LockStrength
from seachange.model.log import CommitRequest, Committed, LogEntry, Outcome
from seachange.runtime.clock import SYSTEM_CLOCK, SystemClock
from seachange.runtime.faults import FAULTS
from seachange.runtime.file_uses import FileUses
from tests.engine.database import bulk, create, insert, rows, scan
from tests.engine.ports import open_hooked
from tests.support.workers import wait_until

CAUSES = [MemoryError, KeyboardInterrupt]


class CutShort:
    """A batch that is never read: the work ends there."""

    def __init__(self, real: Any, cause: type[BaseException]) -> None:
        self.index_id = real.index_id
        self._cause = cause

    @property
    def checksum(self) -> int:
        raise self._cause


def cut(entry: LogEntry, cause: type[BaseException]) -> LogEntry:
    """The entry, with files that are followed by a batch that is cut short."""
    evil: Any = [CutShort(segment, cause) for segment in entry.segments]
    return replace(entry, batches=tuple(evil))


@pytest.mark.parametrize("cause", CAUSES)
def test_entry_that_is_half_applied_is_not_applied_again(tmp_path, other: Node, cause: type[BaseException]):
    create(other)
    insert(other, (1, "a", 1))
    node, catalog = open_hooked(tmp_path)
    assert rows(node) == [(1, "a", 1)]
    reader = node.begin(Isolation.REPEATABLE_READ)
    other.parts.inline_rows_max = 1
    bulk(other, (2, "b", 2), (3, "c", 3))
    before = node.epoch.epoch
    catalog.after["follow"] = lambda entries: tuple(cut(entry, cause) for entry in entries)
    with pytest.raises(cause):
        node.epoch.catch_up()
    catalog.after.clear()
    # What is half applied is above every snapshot, but a transaction that needs more of it cannot go on.
    with pytest.raises(errors.StaleNode):
        scan(node, reader, reader.schema.table(None, "t"))
    with pytest.raises(errors.StaleNode):
        node.epoch.catch_up()
    reader.rollback()
    assert rows(node) == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
    assert node.epoch.epoch > before
    # Others need not wait for its heartbeat.
    assert not any(each.live for each in node.parts.catalog.nodes() if each.epoch == before)
    node.close()


@pytest.mark.parametrize("is_heartbeat", [True, False])
def test_background_work_starts_a_new_epoch(tmp_path, is_heartbeat: bool):
    node, _ = open_hooked(tmp_path)
    before = node.epoch
    before.give_up()
    (node.beat if is_heartbeat else node.follow)()
    assert node.epoch.epoch > before.epoch
    node.close()


def test_lock_table_that_was_cut_short_is_given_up():
    """Two sessions wait for each other, and there is no memory to say so."""
    given_up: list[bool] = []

    def describe(_: KeyHash) -> str:
        raise MemoryError

    def wait() -> None:
        with suppress(errors.StaleNode):
            locks.acquire(first, KeyHash(2), LockStrength.UPDATE)

    locks = LockTable(Epoch(1), describe, lambda: given_up.append(True))
    first, second = LockOwner(1, 1), LockOwner(2, 1)
    locks.acquire(first, KeyHash(1), LockStrength.UPDATE)
    locks.acquire(second, KeyHash(2), LockStrength.UPDATE)
    waiting = Thread(target=wait)
    waiting.start()
    wait_until(lambda: locks.waiting, "the first session to wait")
    with pytest.raises(MemoryError):
        locks.acquire(second, KeyHash(1), LockStrength.UPDATE)
    assert given_up == [True]
    locks.end()
    waiting.join()


def test_key_without_a_lock_is_released_without_effect():
    """There was memory for the first half of a grant only."""
    locks = LockTable(Epoch(1))
    first, second = LockOwner(1, 1), LockOwner(2, 1)
    locks.acquire(first, KeyHash(1), LockStrength.UPDATE)
    locks._locks[KeyHash(1)].holders.clear()
    locks.acquire(second, KeyHash(1), LockStrength.UPDATE)
    locks.release_all(first)
    assert locks.holds(second, KeyHash(1))
    locks.release_all(second)
    assert len(locks) == 0


def test_errors_of_a_lock_are_no_reason_to_give_up():
    given_up: list[bool] = []
    locks = LockTable(Epoch(1), give_up=lambda: given_up.append(True))
    locks.acquire(LockOwner(1, 1), KeyHash(7), LockStrength.UPDATE)
    with pytest.raises(errors.LockRefused):
        locks.acquire(LockOwner(2, 1), KeyHash(7), LockStrength.UPDATE, LockPolicy.NOWAIT)
    assert not given_up


@pytest.mark.parametrize("cause", CAUSES)
def test_block_whose_statement_was_cut_short_has_no_savepoints(node: Node, cause: type[BaseException]):
    session = Session(node)
    session.execute("create table b (id int primary key)")
    session.execute("begin")
    session.execute("insert into b values (1)")
    session.execute("savepoint s")

    def end() -> None:
        raise cause

    FAULTS.arm("segment.reserved", end)
    try:
        with pytest.raises(errors.OutOfMemory if cause is MemoryError else cause):
            session.execute("insert into b select i from generate_series(2, 100000) as g(i)")
    finally:
        FAULTS.disarm()
    with pytest.raises(errors.Error) as refused:
        session.execute("rollback to s")
    assert refused.value.sqlstate == "3B001"
    session.execute("rollback")
    assert session.execute("select count(*) from b").rows == [(0,)]
    session.close()


class WriterWithoutMemory(dict[int, Any]):
    def __setitem__(self, key: int, value: Any) -> None:
        raise MemoryError


def test_transaction_that_was_not_entered_holds_nothing():
    uses = FileUses()
    registry = Registry(Seq(1), uses=uses)
    writers, registry._writers = registry._writers, WriterWithoutMemory()
    with pytest.raises(MemoryError):
        registry.enter(OpenWriter("one"))
    registry._writers = writers
    registry.advance(Seq(9))
    assert len(registry) == 0
    assert registry.marks().low == 9
    assert uses.oldest() == uses.stamp() - 1


class Outcomes(tuple[Outcome, ...]):
    """The answer of a catalog, for which there is no memory the first time."""

    reads = 0

    def __iter__(self) -> Any:
        self.reads += 1
        if self.reads == 1:
            raise MemoryError
        return super().__iter__()


class DecidingCatalog:
    def commit(self, epoch: Epoch, requests: Sequence[CommitRequest]) -> Iterable[Outcome]:
        return Outcomes(Committed(Seq(number), 0) for number, _ in enumerate(requests, 1))


def test_commit_that_is_decided_is_not_reported_as_failed():
    committer = GroupCommitter(cast(Catalog, DecidingCatalog()), Epoch(1), SYSTEM_CLOCK, lambda _: None)
    assert committer.submit(submission(0)) == Committed(Seq(1), 0)


class InterruptedClock(SystemClock):
    """The program is interrupted once, before the session has looked for others to commit with."""

    is_interrupted = False

    def steady_us(self) -> int:
        if not self.is_interrupted:
            self.is_interrupted = True
            raise KeyboardInterrupt
        return super().steady_us()


class CountingCatalog:
    def __init__(self) -> None:
        self.sent: list[CommitId] = []

    def commit(self, epoch: Epoch, requests: Sequence[CommitRequest]) -> Iterable[Outcome]:
        self.sent += [request.commit_id for request in requests]
        return [Committed(Seq(1), 0) for _ in requests]


def submission(number: int) -> Submission:
    return Submission(CommitRequest(CommitId(number.to_bytes(16)), Seq(0), Seq(0)))


def test_commit_that_was_interrupted_is_not_sent_with_the_next():
    catalog = CountingCatalog()
    committer = GroupCommitter(cast(Catalog, catalog), Epoch(1), InterruptedClock(), lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        committer.submit(submission(1))
    second = submission(2)
    committer.submit(second)
    assert catalog.sent == [second.request.commit_id]


class InterruptedCatalog:
    def commit(self, epoch: Epoch, requests: Sequence[CommitRequest]) -> Iterable[Outcome]:
        raise KeyboardInterrupt


def test_outcome_of_others_in_an_interrupted_batch_is_unknown():
    committer = GroupCommitter(cast(Catalog, InterruptedCatalog()), Epoch(1), SYSTEM_CLOCK, lambda _: None)
    other = submission(1)
    committer._waiting.append(other)
    with pytest.raises(KeyboardInterrupt):
        committer.submit(submission(2))
    assert other.done
    assert isinstance(other.problem, errors.UnknownCommitOutcome)
