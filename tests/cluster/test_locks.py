"""Locks between nodes: rows that were locked explicitly, and advisory locks, on both catalogs."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.cluster.sqlprocess import TAKE, SqlProcess
from tests.support.nodes import Place, open_ported_node
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

JOBS = 60
PROCESSES = 4


class Later:
    """A statement in a thread of its own, which has to wait for a lock between nodes."""

    def __init__(self, session: Session, text: str) -> None:
        self.rows: Any = None
        self.problem: errors.Error | None = None
        before = self._waits(session)
        self._thread = threading.Thread(target=self._run, args=(lambda: session.execute(text).rows,), daemon=True)
        self._thread.start()
        wait_until(lambda: self._waits(session) > before or not self._thread.is_alive(), "the statement to wait")
        assert self._thread.is_alive(), self.problem

    @staticmethod
    def _waits(session: Session) -> int:
        return session.node.epoch.shared.waits

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self.rows = work()
        except errors.Error as problem:
            self.problem = problem

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Any:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        if self.problem is not None:
            raise self.problem
        return self.rows


class LaterInside(Later):
    """The same, of one that has to wait inside its node."""

    @staticmethod
    def _waits(session: Session) -> int:
        return session.node.epoch.locks.waits


def finish_blocks(waits: Mapping[Session, Later]) -> list[errors.Error]:
    """Ends blocks in the order in which their waits end: with COMMIT, or with ROLLBACK after an error. Returns the
    errors."""
    left, problems = dict(waits), []
    while left:
        ended = next(iter(wait_until(lambda: [s for s, wait in left.items() if wait.is_over], "a wait to end")))
        problem = left.pop(ended).problem
        ended.execute("rollback" if problem else "commit")
        problems += [] if problem is None else [problem]
    return problems


@pytest.fixture
def nodes(place: Place) -> Iterator[tuple[Node, Node]]:
    opened = open_ported_node(place, "one"), open_ported_node(place, "two")
    yield opened
    for node in opened:
        node.close()


@pytest.fixture
def here(nodes: tuple[Node, Node]) -> Iterator[Session]:
    session = Session(nodes[0])
    session.execute("create table t (id int primary key, n int, code text unique)")
    session.execute("insert into t values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')")
    yield session
    session.close()


@pytest.fixture
def there(nodes: tuple[Node, Node], here: Session) -> Iterator[Session]:
    session = Session(nodes[1])
    yield session
    session.close()


def sqlstate(session: Session, text: str) -> str:
    with pytest.raises(errors.Error) as caught:
        session.execute(text)
    return str(caught.value.sqlstate)


# Rows.


def test_for_update_waits_for_the_other_node_and_sees_what_it_did(here: Session, there: Session):
    here.execute("begin")
    here.execute("select * from t where id = 1 for update")
    waiting = Later(there, "select n from t where id = 1 for update")
    here.execute("update t set n = 11 where id = 1")
    here.execute("commit")
    assert waiting.result() == [(11,)]


def test_nowait_and_skip_locked(here: Session, there: Session):
    here.execute("begin")
    here.execute("select * from t where id = 1 for update")
    assert sqlstate(there, "select * from t where id = 1 for share nowait") == "55P03"
    assert there.execute("select id from t order by id for update skip locked").rows == [(2,), (3,)]
    assert there.execute("select id from t order by id limit 1 for update skip locked").rows == [(2,)]
    assert there.execute("select id from t order by id limit 1 offset 1 for update skip locked").rows == [(3,)]
    here.execute("rollback")
    assert there.execute("select id from t order by id for update skip locked").rows == [(1,), (2,), (3,)]


def test_free_rows_are_found_behind_many_locked_ones(here: Session, there: Session):
    here.execute("insert into t select i, i, 'x' || i from generate_series(4, 500) as g(i)")
    here.execute("begin")
    here.execute("select id from t where id <= 490 for update")
    query = "select id from t order by id limit $1 offset $2 for update skip locked"
    assert there.execute(query, [2, 1]).rows == [(492,), (493,)]
    assert there.execute(query, [100, 8]).rows == [(499,), (500,)]
    assert there.execute(query, [0, 0]).rows == []
    assert len(there.execute(query, [None, 0]).rows) == 10
    here.execute("rollback")


def test_no_more_is_locked_than_is_shown(here: Session, there: Session):
    here.execute("begin")
    assert here.execute("select id from t order by id limit 1 for update skip locked").rows == [(1,)]
    assert there.execute("select id from t order by id for update skip locked").rows == [(2,), (3,)]
    here.execute("rollback")


def test_shared_locks_go_together(here: Session, there: Session):
    here.execute("begin")
    here.execute("select * from t where id = 1 for share")
    assert there.execute("select n from t where id = 1 for share nowait").rows == [(10,)]
    assert sqlstate(there, "select n from t where id = 1 for no key update nowait") == "55P03"
    here.execute("rollback")


def test_time_limits_of_a_wait(here: Session, there: Session):
    here.execute("begin")
    here.execute("select * from t where id = 1 for update")
    there.execute("set lock_timeout = '20ms'")
    assert sqlstate(there, "select * from t where id = 1 for update") == "55P03"
    assert sqlstate(there, "update t set n = 0 where id = 1") == "55P03"
    there.execute("set lock_timeout = 0")
    there.execute("set statement_timeout = '60ms'")
    assert sqlstate(there, "select * from t where id = 1 for update") == "57014"
    assert sqlstate(there, "update t set n = 0 where id = 1") == "57014"
    there.execute("set statement_timeout = 0")
    # A waiter that timed out has left the queue.
    assert not here.node.parts.catalog.lock_queues().waits
    here.execute("commit")
    assert there.execute("select n from t where id = 1 for update").rows == [(10,)]


def test_a_wait_is_cancelled(here: Session, there: Session):
    here.execute("begin")
    here.execute("select * from t where id = 1 for update")
    waiting = Later(there, "select n from t where id = 1 for update")
    there.interrupt()
    with pytest.raises(errors.QueryCanceled):
        waiting.result()
    here.execute("rollback")


def test_a_single_update_waits_for_the_locker_instead_of_failing_it(here: Session, there: Session):
    """Without the catalog's word the update would commit first, and the locker fail with 40001."""
    here.execute("begin")
    ((n,),) = here.execute("select n from t where id = 1 for update").rows
    waiting = Later(there, "update t set n = n + 1 where id = 1")
    here.execute("update t set n = $1 where id = 1", [n * 2])
    here.execute("commit")
    waiting.result()
    assert there.execute("select n from t where id = 1").rows == [(21,)]


def test_a_commit_waits_for_a_mere_lock_and_then_succeeds(here: Session, there: Session):
    there.execute("begin")
    there.execute("update t set n = 0 where id = 2")
    here.execute("begin")
    here.execute("select * from t where id = 2 for share")
    waiting = Later(there, "commit")
    here.execute("commit")
    waiting.result()
    assert here.execute("select n from t where id = 2").rows == [(0,)]


def test_a_locked_key_lets_other_columns_change(here: Session, there: Session):
    here.execute("begin")
    here.execute("select * from t where id = 1 for key share")
    there.execute("update t set n = 99 where id = 1")
    waiting = Later(there, "delete from t where id = 1")
    here.execute("commit")
    waiting.result()
    assert here.execute("select count(*) from t").rows == [(2,)]


def test_ordinary_writes_ask_the_catalog_for_nothing(nodes: tuple[Node, Node], here: Session):
    """A single-row commit takes one catalog transaction, as it did without locks."""
    catalog = CountingCatalog(nodes[0].parts.catalog)
    epoch = nodes[0].epoch
    epoch.committer._catalog = catalog
    epoch.shared._catalog = catalog
    for n in range(3):
        here.execute("update t set n = $1 where id = 1", [n])
    assert catalog.calls == ["commit"] * 3


class CountingCatalog:
    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._catalog, name)


# Deadlocks.


def test_a_deadlock_between_nodes_is_found(here: Session, there: Session):
    for session, id_ in ((here, 1), (there, 2)):
        session.execute("begin")
        session.execute("select * from t where id = $1 for update", [id_])
    waiting = Later(here, "select n from t where id = 2 for update")
    assert sqlstate(there, "select n from t where id = 1 for update") == "40P01"
    there.execute("rollback")
    assert waiting.result() == [(20,)]
    here.execute("rollback")


def test_a_deadlock_of_commits_is_found(here: Session, there: Session):
    """Each wrote, without a lock, what the other has locked."""
    for session, locked, written in ((here, 1, 2), (there, 2, 1)):
        session.execute("begin")
        session.execute("select * from t where id = $1 for update", [locked])
        session.execute("update t set n = 0 where id = $1", [written])
    waiting = Later(here, "commit")
    assert sqlstate(there, "commit") == "40P01"
    waiting.result()
    assert there.execute("select id, n from t order by id").rows == [(1, 10), (2, 0), (3, 30)]


def test_a_deadlock_through_a_wait_inside_a_node_is_found(nodes: tuple[Node, Node], here: Session, there: Session):
    """here -> there between nodes, there -> neighbour between nodes, neighbour -> here inside the node."""
    neighbour = Session(nodes[0])
    for session, locking in (
        (here, "update t set n = 0 where id = 3"),
        (there, "select * from t where id = 1 for update"),
        (neighbour, "select * from t where id = 2 for update"),
    ):
        session.execute("begin")
        session.execute(locking)
    waits = {
        there: Later(there, "select n from t where id = 2 for update"),
        neighbour: LaterInside(neighbour, "update t set n = 1 where id = 3"),
        here: Later(here, "select n from t where id = 1 for update"),
    }
    (problem,) = finish_blocks(waits)
    assert problem.sqlstate == "40P01"
    named = [f"Process {session.client.actor}" for session in (here, neighbour)]
    assert all(name in str(problem.detail) for name in [*named, "of node"])
    neighbour.close()


def test_a_deadlock_through_a_row_and_a_table_lock_of_one_node_is_found(nodes: tuple[Node, Node], here: Session):
    """The row is waited for inside the node, the table through the catalog: neither sees the whole cycle by itself."""
    here.execute("create table u (id int primary key)")
    neighbour = Session(nodes[0])
    for session, locking in ((here, "update t set n = 0 where id = 1"), (neighbour, "lock table u in exclusive mode")):
        session.execute("begin")
        session.execute(locking)
    waits = {
        neighbour: LaterInside(neighbour, "update t set n = 1 where id = 1"),
        here: Later(here, "insert into u values (1)"),
    }
    observer = Session(nodes[1])
    shown = "select session, waits_for, blocked_by from seachange.waits"
    assert (f"session {here.client.actor}", 'relation "u"', str(neighbour.client.actor)) in observer.execute(shown).rows
    (problem,) = finish_blocks(waits)
    assert problem.sqlstate == "40P01"
    neighbour.close()
    observer.close()


# Advisory locks.


def test_advisory_locks_hold_for_all_nodes(here: Session, there: Session):
    here.execute("select pg_advisory_lock(7)")
    here.execute("select pg_advisory_lock(7)")
    assert there.execute("select pg_try_advisory_lock(7), pg_try_advisory_lock(8)").rows == [(False, True)]
    # Counted, and not given up by a rollback.
    here.execute("begin")
    here.execute("select pg_advisory_unlock(7)")
    here.execute("rollback")
    waiting = Later(there, "select pg_advisory_lock(7)")
    here.execute("select pg_advisory_unlock(7)")
    assert waiting.result() == [("",)]
    assert here.execute("select pg_try_advisory_lock(7)").rows == [(False,)]
    there.execute("select pg_advisory_unlock_all()")
    assert here.execute("select pg_try_advisory_lock(7), pg_try_advisory_lock(8)").rows == [(True, True)]


def test_advisory_locks_of_the_transaction_end_with_it(here: Session, there: Session):
    here.execute("begin")
    here.execute("select pg_advisory_xact_lock(1, 2)")
    assert there.execute("select pg_try_advisory_xact_lock(1, 2), pg_try_advisory_lock(4294967298)").rows == [
        (False, True)
    ]
    here.execute("commit")
    assert there.execute("select pg_try_advisory_xact_lock(1, 2)").rows == [(True,)]
    assert here.execute("select pg_try_advisory_xact_lock(1, 2)").rows == [(True,)]


def test_a_shared_advisory_lock_stays_when_the_exclusive_one_goes(here: Session, there: Session):
    here.execute("select pg_advisory_lock(1), pg_advisory_lock_shared(1)")
    assert there.execute("select pg_try_advisory_lock_shared(1)").rows == [(False,)]
    here.execute("select pg_advisory_unlock(1)")
    assert there.execute("select pg_try_advisory_lock_shared(1), pg_try_advisory_lock(1)").rows == [(True, False)]


def test_advisory_locks_end_with_their_session(nodes: tuple[Node, Node], there: Session):
    session = Session(nodes[0])
    session.execute("select pg_advisory_lock(1)")
    waiting = Later(there, "select pg_advisory_lock(1)")
    session.close()
    assert waiting.result() == [("",)]


def test_a_session_may_outlive_its_node(place: Place):
    node = open_ported_node(place)
    session = Session(node)
    session.execute("select pg_advisory_lock(1)")
    session.execute("begin")
    session.execute("select pg_advisory_xact_lock(2)")
    node.close()
    session.close()


def test_a_deadlock_of_advisory_locks_is_reported_once(here: Session, there: Session):
    here.execute("select pg_advisory_lock(1)")
    there.execute("select pg_advisory_lock(2)")
    waiting = Later(here, "select pg_advisory_lock(2)")
    assert sqlstate(there, "select pg_advisory_lock(1)") == "40P01"
    there.execute("select pg_advisory_unlock(2)")
    assert waiting.result() == [("",)]


def test_a_lock_that_was_refused_is_not_held_in_the_node(nodes: tuple[Node, Node], here: Session, there: Session):
    there.execute("select pg_advisory_lock(1)")
    assert here.execute("select pg_try_advisory_lock(1)").rows == [(False,)]
    there.execute("select pg_advisory_unlock(1)")
    neighbour = Session(nodes[0])
    assert neighbour.execute("select pg_try_advisory_lock(1)").rows == [(True,)]
    neighbour.close()


def test_a_session_is_notified_that_its_locks_are_lost(here: Session, there: Session):
    here.execute("select pg_advisory_lock(1)")
    here.node.parts.catalog.end_node(here.node.epoch.epoch)
    there.execute("select pg_advisory_lock(1)")
    here.node.beat()
    assert sqlstate(here, "select 1") == "55000"
    assert here.execute("select pg_try_advisory_lock(1)").rows == [(False,)]


# Processes.


def test_the_locks_of_a_killed_process_go_with_its_epoch(place: Place, here: Session):
    with SqlProcess(place, expiry_ms=1_000) as other:
        assert other.run("select pg_advisory_lock(1)") == [[""]]
        other.run("begin")
        assert other.run("select n from t where id = 1 for update") == [[10]]
        assert here.execute("select pg_try_advisory_lock(1)").rows == [(False,)]
        other.kill()
        # Garbage collection, twice a minute, would end the epoch as well: the waiter does not leave it to that.
        here.execute("set lock_timeout = '15s'")
        assert here.execute("select n from t where id = 1 for update").rows == [(10,)]
        assert here.execute("select pg_try_advisory_lock(1)").rows == [(True,)]


def test_a_queue_gives_every_job_to_one_of_four_processes(place: Place, here: Session):
    here.execute("create table job (id int primary key, what text)")
    here.execute(f"insert into job select i, 'x' from generate_series(1, {JOBS}) as g(i)")
    with ExitStack() as stack:
        executor = [stack.enter_context(SqlProcess(place)) for _ in range(PROCESSES)]
        for process in executor:
            assert process.run("select 1") == [[1]]
        for process in executor:
            process.send(TAKE)
        taken = [process.hear() for process in executor]
    # A conflict would have been answered by its SQLSTATE.
    assert all(isinstance(jobs, list) for jobs in taken), taken
    assert sorted(job for jobs in taken for job in jobs) == list(range(1, JOBS + 1))
    assert here.execute("select count(*) from job").rows == [(0,)]
    assert not here.node.parts.catalog.lock_queues().held
