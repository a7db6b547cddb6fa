"""Statements that take all rows of a table away wait for the transactions that have written some, on both catalogs."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check
from tests.support.nodes import Place, open_ported_node
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

GIVEN = (
    "create role r",
    "create schema s",
    "create table s.parent (id int primary key)",
    "create table s.t (id int primary key, n int, p int references s.parent on delete cascade)",
    "alter table s.t owner to r",
    "insert into s.parent values (1), (2)",
    "insert into s.t values (1, 1, 1), (2, 2, 2)",
)
EMPTYING = (
    "truncate s.t",
    "truncate s.parent cascade",
    "drop table s.t",
    "drop table s.parent, s.t",
    "drop schema s cascade",
    "drop owned by r",
)
CASCADED = "delete from s.parent where id = 1"
WRITES = (
    "insert into s.t values (3, 3, 1)",
    "update s.t set n = 10 where id = 1",
    "update s.t set n = n + 1",
    "delete from s.t where id = 1",
    CASCADED,
    "select * from s.t where id = 1 for key share",
    "merge into s.t using (select 4 as id) m on t.id = m.id when not matched then insert values (m.id, 4, 1)",
    "insert into s.t select g, g, 1 from generate_series(10, 3000) g",
)


@pytest.fixture
def nodes(place: Place) -> Iterator[tuple[Node, Node]]:
    with closing(open_ported_node(place, "one")) as one, closing(open_ported_node(place, "two")) as two:
        for statement in (*GIVEN, "create table seen (id int)"):
            Session(one).execute(statement)
        yield one, two


@pytest.fixture
def writer(nodes: tuple[Node, Node]) -> Session:
    return Session(nodes[0])


@pytest.fixture(params=["one node", "two nodes"])
def other(request: pytest.FixtureRequest, nodes: tuple[Node, Node]) -> Session:
    return Session(nodes[request.param == "two nodes"])


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def start(pool: ThreadPoolExecutor, session: Session, statement: str) -> Future[object]:
    """Runs it in a thread, and returns when it waits for a lock."""
    catalog, epoch = session.node.parts.catalog, session.node.epoch
    me = epoch.epoch, session.client.actor
    future: Future[object] = pool.submit(session.execute, statement)

    def is_waiting() -> bool:
        queued = {(wait.epoch, wait.actor) for wait in catalog.lock_queues().waits}
        return future.done() or epoch.locks.waiting > 0 or me in queued

    wait_until(is_waiting, f"{statement} to wait")
    assert not future.done(), f"{statement} did not wait"
    return future


def renew(session: Session) -> None:
    """The tables as they were."""
    session.execute("drop schema if exists s cascade")
    for statement in GIVEN[1:]:
        session.execute(statement)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("statement", EMPTYING)
def test_writers_are_waited_for(writer: Session, other: Session, pool: ThreadPoolExecutor, statement: str):
    for write in WRITES if statement == EMPTYING[0] else (WRITES[0], CASCADED):
        writer.execute(f"begin; {write}")
        emptying = start(pool, other, statement)
        writer.execute("insert into seen values (1); commit")
        emptying.result(PATIENCE_S)
        assert check(other.node) == []
        renew(other)


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_later_writers_wait_for_the_block_that_truncates(
    writer: Session, other: Session, pool: ThreadPoolExecutor, ending: str
):
    other.execute("begin; truncate s.t; insert into s.t values (5, 5, 1)")
    writer.execute("begin; select * from s.t; insert into seen values (1)")
    writing = start(pool, writer, "update s.t set n = n + 100")
    other.execute(ending)
    writing.result(PATIENCE_S)
    writer.execute("commit")
    wanted = [(105,)] if ending == "commit" else [(101,), (102,)]
    assert other.execute("select n from s.t order by n").rows == wanted


def test_the_wait_is_as_long_as_lock_timeout(writer: Session, other: Session):
    writer.execute("begin; insert into s.t values (3, 3, 1)")
    other.execute("set lock_timeout = '1ms'")
    for statement in EMPTYING:
        with pytest.raises(errors.LockNotAvailable) as caught:
            other.execute(statement)
        assert "holding the lock" in str(caught.value.detail)
    writer.execute("insert into s.t values (4, 4, 1); commit")
    assert other.execute("select count(*) from s.t").rows == [(4,)]


def test_readers_neither_wait_nor_are_waited_for(writer: Session, other: Session):
    writer.execute("begin isolation level repeatable read; select * from s.t")
    other.execute("set lock_timeout = '1ms'; begin; truncate s.t")
    assert Session(writer.node).execute("set lock_timeout = '1ms'; select count(*) from s.t").rows == [(2,)]
    other.execute("commit")
    assert writer.execute("select count(*) from s.t").rows == [(2,)]


def test_rows_that_refer_to_a_dropped_table_are_committed(writer: Session, other: Session):
    writer.execute("begin; insert into s.t values (3, 3, 1)")
    other.execute("drop table s.parent cascade")
    writer.execute("commit")
    assert other.execute("select count(*) from s.t").rows == [(3,)]


def test_a_savepoint_releases_the_lock(writer: Session, other: Session):
    other.execute("begin; savepoint a; truncate s.t; rollback to a")
    writer.execute("set lock_timeout = '1ms'; insert into s.t values (3, 3, 1)")
    other.execute("commit")


def test_a_cycle_has_one_victim(writer: Session, other: Session, pool: ThreadPoolExecutor):
    writer.execute("begin; insert into s.t values (3, 3, 1)")
    other.execute("begin; insert into s.t values (4, 4, 1)")
    ends = [pool.submit(session.execute, "truncate s.t; commit") for session in (writer, other)]
    problems = [problem for end in ends if (problem := end.exception(PATIENCE_S)) is not None]
    assert [type(problem) for problem in problems] == [errors.DeadlockDetected]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "steps",
    [
        ("alter table s.t add column more int", "insert into s.t values (3, 3, 1, 1)"),
        ("insert into s.t values (3, 3, 1)", "alter table s.t add column more int"),
        ("update s.t set n = 5", "alter table s.t add check (n < 9)"),
    ],
)
@pytest.mark.parametrize("later", ["truncate s.t", "begin; truncate s.t", "begin; lock table s.t", "drop table s.t"])
def test_a_block_changes_the_table_and_writes_to_it(
    writer: Session, other: Session, pool: ThreadPoolExecutor, later: str, steps: tuple[str, str]
):
    """The other one waits for both of its locks, and has neither."""
    writer.execute(f"begin; {steps[0]}")
    waiting = start(pool, other, later)
    writer.execute(f"{steps[1]}; commit")
    waiting.result(PATIENCE_S)
    if "begin" in later:
        other.execute("commit")
    assert check(other.node) == []
