"""A table that an open transaction has changed: other changes of it, on any node, wait for its end."""

from collections.abc import Iterator

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.blocks import sent

pytestmark = pytest.mark.either_catalog

SETUP = tuple(
    sql
    for table in ("a", "b")
    for sql in (f"create table {table} (id int primary key, x int)", f"insert into {table} values (1, 1), (2, 2)")
)


@pytest.fixture(params=["one node", "two nodes"])
def sessions(nodes: tuple[Node, Node], request: pytest.FixtureRequest) -> Iterator[tuple[Session, Session]]:
    first, second = Session(nodes[0]), Session(nodes[0 if request.param == "one node" else 1])
    yield first, second
    second.close()
    first.close()


NEXT = ["alter table a add column y int", "create index a_x on a (x)", "truncate a"]


@pytest.mark.parametrize("sql", NEXT)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_another_change_waits_for_the_end(sessions: tuple[Session, Session], sql: str, end: str):
    first, second = sessions
    first.execute("begin")
    first.execute("alter table a add column m int default 7")
    with sent(second, sql) as ended:
        first.execute(end)
    assert ended == [""]
    names = {column.name for column in second.execute("select * from a").columns or ()}
    assert ("m" in names) == (end == "commit")
    assert ("y" in names) == ("y int" in sql)


@pytest.mark.parametrize("sql", ["drop table a", "alter table a rename to n"])
def test_what_was_dropped_or_renamed_is_gone_then(sessions: tuple[Session, Session], sql: str):
    first, second = sessions
    first.execute("begin")
    first.execute(sql)
    with sent(second, "alter table a add column y int") as ended:
        first.execute("commit")
    assert ended == ["42P01"]


def test_a_name_that_an_open_transaction_has_given_is_waited_for(sessions: tuple[Session, Session]):
    first, second = sessions
    first.execute("begin")
    first.execute("create table n (id int)")
    with sent(second, "create index n on b (x)") as ended:
        first.execute("commit")
    assert ended == ["42P07"]


def test_lock_timeout_and_other_tables(sessions: tuple[Session, Session]):
    first, second = sessions
    first.execute("begin")
    first.execute("alter table a add column m int")
    second.execute("set lock_timeout = '100ms'")
    with pytest.raises(errors.LockNotAvailable):
        second.execute("alter table a add column y int")
    second.execute("alter table b add column y int")
    # Rows of the table are written meanwhile.
    second.execute("insert into a values (3, 3)")
    first.execute("commit")
    assert list(second.execute("select count(*), count(m) from a").rows) == [(3, 0)]


def test_two_that_wait_for_each_other(sessions: tuple[Session, Session]):
    first, second = sessions
    for session, table in ((first, "a"), (second, "b")):
        session.execute("begin")
        session.execute(f"alter table {table} add column m int")
    with sent(second, "alter table a add column y int") as ended:
        with pytest.raises(errors.DeadlockDetected):
            first.execute("alter table b add column y int")
        first.execute("rollback")
    assert ended == [""]
    second.execute("commit")


def test_rows_of_a_granted_table_that_was_dropped_since_are_a_conflict(sessions: tuple[Session, Session]) -> None:
    first, second = sessions
    first.execute("create role reader")
    first.execute("begin")
    first.execute("grant select on a to reader")
    first.execute("insert into a values (3, 3)")
    second.execute("drop table a")
    with pytest.raises(errors.SerializationFailure):
        first.execute("commit")
