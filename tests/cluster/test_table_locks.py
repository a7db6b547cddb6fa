"""Table locks on both catalogs, compared with those of a real PostgreSQL."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import psycopg
import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.locking import CONFLICTS, TableLock
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import Place, open_ported_node

Run = Callable[[str], object]
NOT_AVAILABLE = "55P03"
ROUNDS = 5
# Statements that take a lock by themselves.
STATEMENTS = (
    "select * from t",
    "select * from t where id = 1 for update",
    "insert into t values (9)",
    "update t set id = 8 where id = 1",
    "delete from t where id = 1",
    "merge into t using (select 7 as id) s on t.id = s.id when not matched then insert values (s.id)",
)


@pytest.fixture
def nodes(place: Place) -> Iterator[tuple[Node, Node]]:
    with closing(open_ported_node(place, "one")) as one, closing(open_ported_node(place, "two")) as two:
        Session(one).execute("create table t (id int primary key)")
        Session(one).execute("insert into t values (1)")
        yield one, two


def measure(hold: Run, want: Run) -> dict[tuple[str, str], str]:
    """For each mode that is held, and each that another session wants at once, the SQLSTATE."""
    found = {}
    for held in TableLock:
        hold("begin")
        hold(f"lock table t in {held.sql_name} mode")
        for wanted in TableLock:
            want("begin")
            found[held.name, wanted.name] = outcome(want, f"lock table t in {wanted.sql_name} mode nowait")
            want("rollback")
        hold("rollback")
    return found


def measure_statements(hold: Run, want: Run) -> dict[tuple[str, str], str]:
    """The same for a writer that is there first, and for statements behind a lock."""
    found = {}
    want("set lock_timeout = '1ms'")
    for mode in TableLock:
        hold("begin")
        hold(f"lock table t in {mode.sql_name} mode")
        for statement in STATEMENTS:
            want("begin")
            found[mode.name, statement] = outcome(want, statement)
            want("rollback")
        hold("rollback")
    want("set lock_timeout = 0")
    for statement in STATEMENTS:
        hold("begin")
        hold(statement)
        for mode in TableLock:
            want("begin")
            found[statement, mode.name] = outcome(want, f"lock table t in {mode.sql_name} mode nowait")
            want("rollback")
        hold("rollback")
    return found


def outcome(run: Run, statement: str) -> str:
    try:
        run(statement)
    except (errors.Error, psycopg.Error) as problem:
        return problem.sqlstate or ""
    return ""


@pytest.fixture(scope="module", params=[measure, measure_statements], ids=["modes", "statements"])
def compared(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[tuple[Callable[..., object], object]]:
    """How PostgreSQL has it."""
    with (
        psycopg.connect(postgres_url, autocommit=True) as one,
        psycopg.connect(postgres_url, autocommit=True) as two,
    ):
        with suppress(psycopg.errors.UndefinedTable):
            one.execute("drop table t")
        one.execute("create table t (id int primary key)")
        one.execute("insert into t values (1)")
        yield request.param, request.param(one.execute, two.execute)
        two.execute("drop table t")


@pytest.mark.parametrize("across", [False, True], ids=["one node", "two nodes"])
def test_locks_conflict_as_in_postgresql(
    nodes: tuple[Node, Node], across: bool, compared: tuple[Callable[..., object], object]
):
    measured, expected = compared
    one, two = Session(nodes[0]), Session(nodes[across])
    assert measured(one.execute, two.execute) == expected


def test_the_table_of_conflicts_is_that_of_postgresql(
    compared: tuple[Callable[..., object], dict[tuple[str, str], str]],
):
    _, found = compared
    for held in TableLock:
        for wanted in TableLock:
            expected = NOT_AVAILABLE if held in CONFLICTS[wanted] else ""
            assert found.get((held.name, wanted.name), expected) == expected


def test_a_killed_process_holds_no_table_lock(place: Place, nodes: tuple[Node, Node]):
    session = Session(nodes[0])
    with SqlProcess(place, expiry_ms=1_000) as process:
        assert process.run("begin; lock table t") == []
        with pytest.raises(errors.LockNotAvailable):
            session.execute("begin; lock table t in access share mode nowait")
        session.execute("rollback; begin")
        process.kill()
        # It waits for no more than the end of the epoch.
        session.execute("lock table t; insert into t values (2); commit")
    assert session.execute("select id from t order by id").rows == [(1,), (2,)]


@pytest.mark.parametrize("mode", [TableLock.SHARE, TableLock.ACCESS_EXCLUSIVE])
def test_others_commit_nothing_while_it_is_held(nodes: tuple[Node, Node], mode: TableLock):
    """Writers of both nodes, alone and in blocks. The holder counts twice, and sees the rows of everyone who had begun
    before: numbers are drawn in the block that writes them, so none that is smaller comes later."""
    Session(nodes[0]).execute("create sequence s; create table log (n bigint primary key)")
    stopped = threading.Event()

    def write(node: Node, text: str) -> int:
        session, written = Session(node), 0
        while not stopped.is_set():
            session.execute(text)
            written += 1
        return written

    alone = "insert into log values (nextval('s'))"
    block = "begin; lock table log in row exclusive mode; insert into log values (nextval('s')); select 1; commit"
    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(write, node, text) for node in nodes for text in (alone, block)]
        try:
            locker = Session(nodes[1])
            for _ in range(ROUNDS):
                locker.execute(f"begin; lock table log in {mode.sql_name} mode")
                (first,) = locker.execute("select count(*), max(n) from log").rows
                (again,) = locker.execute("select count(*), max(n) from log").rows
                locker.execute("commit")
                assert again == first
                count, greatest = first
                (up_to,) = locker.execute("select count(*) from log where n <= $1", [greatest or 0]).rows
                assert up_to == (count,), "a row came later than one with a greater number"
        finally:
            stopped.set()
        assert all(writer.result(60) > 0 for writer in writers)
