"""A READ COMMITTED block whose rows were written again by a schema change, and then changed by others."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check
from tests.support.workers import wait_until

GIVEN = (
    "create table t (id int primary key, n int, v text)",
    "insert into t values (1, 1, 'a'), (2, 2, 'b')",
    "create table u (id int primary key)",
)
REWRITES = ("alter table t alter primary key using columns (id, v)", "alter table t drop constraint t_pkey")


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


@pytest.mark.parametrize("rewrite", REWRITES)
def test_what_was_read_of_other_tables_before_is_not_read_again(block: Session, others: Session, rewrite: str) -> None:
    run(block, "begin", "select count(*) from u", "update t set n = n + 1 where id = 1")
    run(others, rewrite, "insert into u values (1)", "update t set n = n + 10 where id = 1")
    run(block, "commit")
    assert run(others, "select n from t order by id") == [(12,), (2,)]


@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize(
    "statements",
    [
        ("select n from t where id = 1 for update", "update t set n = 2 where id = 1"),
        ("select n from t where id = 1", "update t set n = 2 where id = 1"),
        ("update t set n = n + 1 where id = 1", "select count(*) from u"),
    ],
    ids=["locked before", "read before", "read after"],
)
def test_what_the_client_may_rely_on_is_read_again(
    block: Session, others: Session, rewrite: str, statements: tuple[str, ...]
) -> None:
    run(block, "begin", *statements)
    run(others, rewrite, "insert into u values (1)", "update t set n = n + 10 where id = 1")
    with pytest.raises(errors.SerializationFailure):
        run(block, "commit")
    assert run(others, "select n from t order by id") == [(11,), (2,)]


@pytest.mark.parametrize(
    "statement", ["update t set n = n + 10 where id = 1", "select n from t where id = 1 for update"]
)
@pytest.mark.parametrize("locked", ["update t set n = n + 1 where id = 1 returning n", "delete from t where id = 1"])
def test_row_stays_locked_when_another_primary_index_holds_it(
    block: Session, others: Session, locked: str, statement: str
) -> None:
    run(block, "begin", locked)
    run(others, "alter table t alter n type bigint using n * 1")
    with ThreadPoolExecutor() as pool, closing(Session(block.node)) as later:
        waiting = pool.submit(run, later, statement)
        wait_until(lambda: block.node.epoch.locks.waiting > 0 or waiting.done(), "the second writer to wait")
        assert not waiting.done()
        run(block, "commit")
        waiting.result()
    expected = [] if locked.startswith("delete") else [(12,)] if statement.startswith("update") else [(2,)]
    assert run(others, "select n from t where id = 1") == expected


def test_key_stays_locked_when_another_primary_index_holds_it(block: Session, others: Session) -> None:
    run(block, "begin", "insert into t values (3, 3, 'c')")
    run(others, "alter table t alter n type bigint using n * 1")
    with ThreadPoolExecutor() as pool, closing(Session(block.node)) as later:
        waiting = pool.submit(run, later, "insert into t values (3, 30, 'd')")
        wait_until(lambda: block.node.epoch.locks.waiting > 0 or waiting.done(), "the second writer to wait")
        run(block, "commit")
        with pytest.raises(errors.UniqueViolation):
            waiting.result()
    assert run(others, "select n from t where id = 3") == [(3,)]


@pytest.mark.parametrize("use", ["select n from t where id = 1", "select n from t where id = 1 for update"])
@pytest.mark.parametrize("change", ["alter table t alter n type bigint using n * 1", "create index on t (n)"])
def test_block_that_changes_a_table_itself_sees_what_others_have_made_of_it(
    block: Session, others: Session, use: str, change: str
) -> None:
    run(block, "begin", use)
    run(others, "alter table t alter n type int using n * 10")
    run(block, "savepoint s", change)
    assert run(block, "select n from t order by id") == [(10,), (20,)]
    assert run(block, "update t set n = n + 1 where id = 2 returning n") == [(21,)]
    run(block, "rollback to s", change, "update t set n = n + 5 where id = 2", "commit")
    assert run(others, "select n from t order by id") == [(10,), (25,)]
