"""A READ COMMITTED statement that goes back to the limit of one table, and rows of others that have gone on."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check

GIVEN = (
    "create table parent (id int primary key, n int, v text)",
    "create table child (id int primary key, p int references parent, n int)",
    "insert into parent values (1, 1, 'a'), (2, 2, 'b')",
    "insert into child values (1, 1, 1)",
)
# The child is limited to what was before: a statement that deletes parents reads as of then.
CONVERT = "alter table child alter column n type text using 'n' || n"
CHANGES = {
    "column": ("alter table parent add column extra int not null default 7",),
    "index": ("create index by_n on parent (n)", "create unique index by_v on parent (v)"),
    "several": ("alter table parent add column extra int default 7", "create index on parent (n, extra)"),
}


@pytest.fixture
def block(node: Node) -> Iterator[Session]:
    with closing(Session(node)) as session:
        yield session


@pytest.fixture
def others(node: Node, block: Session) -> Iterator[Session]:
    with closing(Session(node)) as session:
        run(session, "set seachange.drain_timeout = '1ms'", *GIVEN)
        yield session
        block.rollback()
        assert check(node) == []


def run(session: Session, *statements: str) -> list[tuple[Any, ...]]:
    return [list(session.execute(statement).rows) for statement in statements][-1]


def begin(block: Session) -> None:
    """The count tells the client of rows that come later: the block cannot begin again unseen."""
    run(block, "begin", "select count(*) from parent")
    run(block, "insert into parent values (3, 3, 'c'), (4, 4, 'd')", "insert into child values (3, 3, 30)")


@pytest.mark.parametrize("change", CHANGES)
def test_rows_that_have_gone_on_go_back_with_a_statement(block: Session, others: Session, change: str) -> None:
    begin(block)
    run(others, CONVERT, *CHANGES[change], "insert into parent values (9, 9, 'n')")
    run(block, "delete from parent where id = 4", "update parent set n = n + 10 where id = 3")
    assert run(block, "select id, n from parent order by id") == [(1, 1), (2, 2), (3, 13), (9, 9)]
    run(block, "commit")
    assert run(others, "select id, n, v from parent where id > 2 order by id") == [(3, 13, "c"), (9, 9, "n")]
    assert run(others, "select p, n from child where id = 3") == [(3, "n30")]


def test_rows_go_back_that_have_gone_on_in_earlier_statements(block: Session, others: Session) -> None:
    begin(block)
    run(others, CONVERT, *CHANGES["index"])
    run(block, "select v from parent")
    run(others, *CHANGES["column"], "insert into parent values (9, 9, 'n')")
    assert run(block, "select count(*) from parent") == [(5,)]
    run(block, "delete from parent where id = 4", "commit")
    assert run(others, "select id, extra from parent where id > 2 order by id") == [(3, 7), (9, 7)]


def test_rows_that_went_back_only_for_a_statement_that_was_undone(block: Session, others: Session) -> None:
    begin(block)
    run(others, CONVERT, *CHANGES["several"], "insert into parent values (9, 9, 'n')")
    run(block, "savepoint s", "delete from parent where id = 4", "rollback to s")
    assert run(block, "select id from parent where n > 2 order by id") == [(3,), (4,), (9,)]
    run(block, "delete from parent where id = 3 and v = 'none'", "commit")
    assert run(others, "select id, extra from parent where id > 2 order by id") == [(3, 7), (4, 7), (9, 7)]


@pytest.mark.parametrize(
    ("change", "since"),
    [
        ("alter table parent add column extra int default 7", "update parent set n = 30 where id = 3"),
        ("alter table parent drop column v", "select count(*) from child where id = 0"),
        ("alter table parent alter primary key using columns (id, n)", "select count(*) from child where id = 0"),
    ],
    ids=["written to since", "a column is gone", "a key is gone"],
)
def test_rows_that_cannot_go_back_are_a_conflict(block: Session, others: Session, change: str, since: str) -> None:
    run(block, "begin", "select count(*) from parent", "insert into parent (id, n) values (3, 3), (4, 4)")
    run(block, "insert into child values (3, 3, 30)")
    run(others, CONVERT, change, "insert into parent (id, n) values (9, 9)")
    run(block, since)
    with pytest.raises(errors.SerializationFailure, match="parent has changed since the transaction wrote to it"):
        run(block, "delete from parent where id = 4")
