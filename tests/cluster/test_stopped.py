"""Processes that are stopped (SIGSTOP) past their expiry and go on later, while others have changed the schema.

Judged by the server's clock on PostgreSQL, on SQLite by that of the one who looks on, which is an hour ahead.
"""

import signal
from collections.abc import Iterator

import pytest

from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import HOUR_MS, HOUR_S, Place, ShiftedClock, open_ported_node
from tests.support.workers import wait_until

# Were it short on SQLite, a process might be stopped while it beats, with the file lock in its hands.
EXPIRY_MS = {True: 10_000, False: 1_000}
INDEX = "create unique index item_code on item (code)"
ROWS = 200


@pytest.fixture
def node(place: Place) -> Iterator[Node]:
    """Who looks on, and goes on with what is left behind."""
    opened = open_ported_node(place, "survivor", 2 * HOUR_MS, ShiftedClock(HOUR_S))
    # It would take the others for dead before they sleep.
    opened.jobs.paused = True
    session = Session(opened)
    session.execute("create table item (id int primary key, code text, n int)")
    session.execute(f"insert into item select i, 'code ' || i, i from generate_series(1, {ROWS}) g(i)")
    session.close()
    yield opened
    opened.close()


def sleeper(place: Place, fault: str | None = None) -> SqlProcess:
    return SqlProcess(place, EXPIRY_MS[place.catalog is None], fault)


def expire(node: Node, epoch: int) -> None:
    def is_dead() -> bool:
        node.parts.catalog.expire_nodes()
        return all(record.epoch != epoch or not record.live for record in node.parts.catalog.nodes())

    wait_until(is_dead, f"epoch {epoch} to expire")


def run(node: Node, *statements: str) -> list[tuple[object, ...]]:
    session = Session(node)
    try:
        return [list(session.execute(statement).rows) for statement in statements][-1]
    finally:
        session.close()


def jobs(node: Node) -> list[str]:
    return [str(status) for (status,) in run(node, "select status from seachange.jobs order by id")]


def test_a_writer_with_an_open_transaction_is_refused_when_it_wakes(place: Place, node: Node):
    """Were it accepted, its row would have no entry in the index that was built meanwhile, and would be the second one
    with its code."""
    with sleeper(place) as writer:
        assert writer.run("begin") == []
        assert writer.run("insert into item values (1000, 'mine', 0)") == []
        assert writer.run("update item set code = 'moved' where id = 7") == []
        epoch = writer.epoch(node)
        writer.signal(signal.SIGSTOP)
        writer.wait_stopped()
        expire(node, epoch)
        run(node, INDEX, "insert into item values (1001, 'mine', 0)")
        writer.signal(signal.SIGCONT)
        assert writer.run("commit") == "40001"
        # Its session goes on under a new epoch, and knows the index.
        assert writer.run("insert into item values (1002, 'mine', 0)") == "23505"
        assert writer.run("insert into item values (1003, 'yours', 0)") == []
    assert run(node, "select id from item where code in ('mine', 'moved', 'yours') order by id") == [(1001,), (1003,)]
    assert not check(node)


@pytest.mark.parametrize(
    ("point", "answer"),
    [
        ("commit.queued", "23505"),
        ("commit.decided", []),
        pytest.param("commit.applied", [], marks=pytest.mark.slow),
    ],
)
def test_a_writer_in_the_middle_of_its_commit_commits_once_or_not_at_all(
    place: Place, node: Node, point: str, answer: object
):
    """What was not decided is planned again, with the index: its code has been taken. What was decided is in the rows
    that the index is built of, and its client gets the error. Were an old commit accepted, there would be two rows with
    the code; were a decided one repeated, its own row would be in its way."""
    with sleeper(place, f"{point}:1:stop") as writer:
        writer.send("insert into item values (1000, 'mine', 0)")
        writer.wait_stopped()
        expire(node, writer.epoch(node))
        if answer:
            run(node, "insert into item values (1001, 'mine', 0)")
        run(node, INDEX)
        writer.signal(signal.SIGCONT)
        assert writer.hear() == answer
    assert run(node, "select count(*) from item where code = 'mine'") == [(1,)]
    assert not check(node)


MORE_POINTS = ("job.drained", "job.raised", "job.built", "job.attached", "job.published")


@pytest.mark.parametrize(
    "point", ["job.unit", "job.validated", *(pytest.param(point, marks=pytest.mark.slow) for point in MORE_POINTS)]
)
def test_a_runner_that_wakes_finds_its_job_done_by_another(place: Place, node: Node, point: str):
    """It is stopped before a raise, in its backfill, before it attaches what it has built and before it publishes. Were
    it to go on, it would attach a second generation, or publish an older version over what has happened since: the
    index that was dropped would be back, without the rows that were written meanwhile."""
    with sleeper(place, f"{point}:1:stop") as runner:
        runner.send(INDEX)
        runner.wait_stopped()
        expire(node, runner.epoch(node))
        node.jobs.paused = False
        node.jobs.wake()
        wait_until(lambda: jobs(node) == ["succeeded"], "the survivor to finish the job")
        run(node, "drop index item_code", "insert into item values (1001, 'code 1', 0)")
        run(node, "alter table item add column more int default 3")
        versions = run(node, "select distinct version from seachange.descriptors where table_name = 'item'")
        runner.signal(signal.SIGCONT)
        # The statement asked for the index, and the index was there.
        assert runner.hear() == []
    assert run(node, "select distinct version from seachange.descriptors where table_name = 'item'") == versions
    assert run(node, "select name from seachange.descriptors where element = 'index'") == [("item_pkey",)]
    assert run(node, "select count(*), sum(more)::int from item where code = 'code 1'") == [(2, 6)]
    assert jobs(node) == ["succeeded"]
    assert not check(node)


def test_a_resumed_worker_does_not_revert_a_publication_of_another(place: Place, node: Node):
    """It was about to revert the change, because a user had cancelled it; another node has done so, and the same change
    was made again. Were the sleeper to continue its revert, it would remove the new index."""
    run(node, "insert into item values (1000, 'code 1', 0)")
    with sleeper(place, "job.reverting:1:stop") as runner:
        runner.send(INDEX)
        runner.wait_stopped()
        expire(node, runner.epoch(node))
        node.jobs.paused = False
        node.jobs.wake()
        wait_until(lambda: jobs(node) == ["failed"], "the survivor to take the change back")
        run(node, "delete from item where id = 1000", INDEX)
        runner.signal(signal.SIGCONT)
        assert runner.hear() == "23505"
    assert ("item_code",) in run(node, "select name from seachange.descriptors where element = 'index'")
    assert jobs(node) == ["failed", "succeeded"]
    assert not check(node)
