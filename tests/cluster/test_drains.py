"""Drains of two nodes: which open transactions a change waits for, and that it waits for none which waits for it.

The drains have an hour: a test that ends in time has a change that did not wait for the timeout.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId
from seachange.model.locking import NO_SCOPE, LockOwner, QueueMode
from seachange.storage.keys import job_hash
from tests.cluster.test_locks import Later, LaterInside
from tests.support.nodes import Place, open_ported_node
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

INDEX = "create unique index t_n on t (n)"


class Changing:
    """A statement that begins a job, in a thread of its own; it may end at once."""

    def __init__(self, session: Session, text: str = INDEX) -> None:
        self.problem: errors.Error | None = None
        self._session = session
        self._thread = threading.Thread(target=self._run, args=(text,), daemon=True)
        self._thread.start()

    def _run(self, text: str) -> None:
        try:
            self._session.execute(text)
        except errors.Error as problem:
            self.problem = problem

    def await_drain(self) -> str:
        """Until it waits for older transactions; returns for which."""
        waiting = "select waiting_for from seachange.jobs where waiting_for is not null and status = 'running'"
        with_session = Session(self._session.node)
        found = wait_until(lambda: with_session.execute(waiting).rows, "the change to wait for older transactions")
        with_session.close()
        return str(found[0][0])

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        if self.problem is not None:
            raise self.problem


@pytest.fixture
def nodes(place: Place) -> Iterator[tuple[Node, Node]]:
    opened = open_ported_node(place, "one"), open_ported_node(place, "two")
    yield opened
    for node in opened:
        node.close()


def open_session(node: Node) -> Session:
    session = Session(node)
    session.execute("set seachange.drain_timeout = '1h'")
    return session


@pytest.fixture
def here(nodes: tuple[Node, Node]) -> Iterator[Session]:
    session = open_session(nodes[0])
    session.execute("create table t (id int primary key, n int)")
    session.execute("insert into t values (1, 10), (2, 20), (3, 30)")
    session.execute("create table u (id int primary key, n int)")
    session.execute("insert into u values (1, 1)")
    yield session
    session.close()


@pytest.fixture(params=["one node", "two nodes"])
def writer(request: pytest.FixtureRequest, nodes: tuple[Node, Node], here: Session) -> Iterator[Session]:
    """In the node that runs the change, and in another."""
    session = open_session(nodes[request.param == "two nodes"])
    yield session
    session.close()


def publish(session: Session) -> bool:
    """Does not wait for the next heartbeat of the node."""
    session.node.beat()
    return True


def run_all(session: Session, *texts: str) -> None:
    for text in texts:
        session.execute(text)


def rows(session: Session, text: str) -> list[tuple[Any, ...]]:
    return list(session.execute(text).rows)


def events_of(session: Session) -> list[str]:
    """What jobs have reported about waiting for a session."""
    with closing(Session(session.node)) as asking:
        events = [event for (event,) in rows(asking, "select event from seachange.events")]
    return [event for event in events if re.search(rf"\bsession {session.client.actor}\b", event)]


@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_open_writer_of_another_table_is_not_waited_for(here: Session, writer: Session, level: str):
    run_all(writer, f"begin isolation level {level}", "update u set n = n + 1 where id = 1")
    changing = Changing(here)
    # It may wait for the heartbeat of a node, never for the session.
    wait_until(lambda: changing.is_over or events_of(writer), "the change to end or to wait for the session")
    assert not events_of(writer)
    changing.result()
    # What it does to the table afterwards is checked like the rows of any late writer.
    run_all(writer, "insert into t values (4, 40)", "commit")
    assert rows(here, "select count(*) from t where n = 40") == [(1,)]


def test_open_writer_of_the_table_is_waited_for_and_named(here: Session, writer: Session):
    run_all(writer, "begin", "insert into t values (4, 40)")
    changing = Changing(here)
    assert f"session {writer.client.actor}" in changing.await_drain()
    writer.execute("commit")
    changing.result()
    assert rows(here, "select count(*) from t where n = 40") == [(1,)]


def test_writer_that_has_seen_the_new_version_is_not_waited_for(here: Session, writer: Session):
    run_all(writer, "begin", "insert into t values (4, 40)")
    changing = Changing(here)
    changing.await_drain()
    # Its rows are rebased before the next statement: it maintains the index from then on, and checks it.
    wait_until(lambda: rows(writer, "select count(*) from t") and publish(writer) and changing.is_over, "the change")
    changing.result()
    writer.execute("commit")
    assert rows(here, "select count(*) from t where n = 40") == [(1,)]


def test_session_that_holds_up_a_drain_and_changes_the_same_table(here: Session, writer: Session):
    run_all(writer, "begin", "insert into t values (4, 40)")
    changing = Changing(here)
    changing.await_drain()
    # It waits for the job, and the job no longer for it.
    writer.execute("alter table t add column note text")
    writer.execute("commit")
    changing.result()
    assert rows(here, "select id, note from t where n = 40") == [(4, None)]


def test_drain_gives_way_to_a_session_that_waits_for_one_that_waits_for_the_job(
    nodes: tuple[Node, Node], here: Session, writer: Session
):
    """writer waits for a row of neighbour, inside their node; neighbour waits for the job."""
    neighbour = open_session(writer.node)
    run_all(neighbour, "begin", "update u set n = n + 1 where id = 1")
    run_all(writer, "begin", "insert into t values (4, 40)")
    changing = Changing(here)
    changing.await_drain()
    row = LaterInside(writer, "update u set n = n + 1 where id = 1")
    job = Later(neighbour, "alter table t add column note text")
    changing.result()
    job.result()
    neighbour.execute("commit")
    row.result()
    writer.execute("commit")
    neighbour.close()
    assert rows(here, "select n from u") == [(3,)]
    assert rows(here, "select note from t where n = 40") == [(None,)]


def test_drain_gives_way_to_a_session_that_waits_for_the_session_that_drains(here: Session, writer: Session):
    here.execute("select pg_advisory_lock(1)")
    run_all(writer, "begin", "insert into t values (4, 40)")
    changing = Changing(here)
    changing.await_drain()
    waits = LaterInside if writer.node is here.node else Later
    waiting = waits(writer, "select pg_advisory_xact_lock(1)")
    changing.result()
    here.execute("select pg_advisory_unlock(1)")
    waiting.result()
    writer.execute("commit")
    assert rows(here, "select count(*) from t where n = 40") == [(1,)]


def test_cycle_through_a_job_that_begins_ends_with_the_session_behind_the_job(here: Session, writer: Session):
    """The session that begins the job waits for a row of the one that waits for the job."""
    run_all(here, "begin", "select * from t where id = 1 for update")
    writer.execute("begin")
    writer._block.work(lambda transaction: transaction.state.write_locks.run_job(JobId(77)))
    waits = LaterInside if writer.node is here.node else Later
    waiting = waits(writer, "select * from t where id = 1 for update")
    owner = LockOwner(here.client.actor, NO_SCOPE)
    with (
        pytest.raises(errors.DeadlockDetected) as caught,
        here.node.epoch.shared.queued(owner, job_hash(77), QueueMode.JOB) as check,
    ):
        wait_until(check, "the deadlock to be found")
    assert f"Process {here.client.actor} waits for JobLock" in str(caught.value.detail)
    here.execute("rollback")
    waiting.result()
    writer.execute("rollback")
    assert not here.node.parts.catalog.lock_queues().held
