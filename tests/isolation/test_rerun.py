"""Statements that meet rows changed since their snapshot: run again on the newest version, or refused."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.buffer.write_locks import LOCKED_ROWS_MAX
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.sql.copy.copy_text import copy_format
from tests.engine.database import open_quiet
from tests.engine.threads import together
from tests.support.workers import wait_until


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = open_quiet(tmp_path)
    yield node
    node.close()


@pytest.fixture
def pair(node: Node) -> Iterator[tuple[Session, Session]]:
    first, second = Session(node), Session(node)
    first.execute("create table t (id int primary key, n int)")
    first.execute("insert into t values (1, 10), (2, 20)")
    yield first, second
    first.close()
    second.close()


def while_waiting(node: Node, waits: Session, statement: str, other: Session, end: str) -> tuple[str, int]:
    """Runs a statement that waits for the other's transaction, which ends meanwhile; gives its tag and count."""

    def finish() -> tuple[str, int]:
        wait_until(lambda: node.epoch.locks.waiting, "the statement to wait")
        other.execute(end)
        return "", 0

    def run() -> tuple[str, int]:
        result = waits.execute(statement)
        return result.tag, result.count

    return together(run, finish)[0]


@pytest.mark.parametrize(
    ("change", "end", "statement", "count"),
    [
        ("update t set n = 11 where id = 1", "commit", "update t set n = n + 1 where n = 10", 0),
        ("update t set n = 11 where id = 1", "rollback", "update t set n = n + 1 where n = 10", 1),
        ("update t set n = 11 where id = 1", "commit", "update t set n = n + 1 where n = 11 or id = 1", 1),
        ("update t set n = 10 where id = 2", "commit", "delete from t where n = 10 or id = 2", 2),
        ("delete from t where id = 1", "commit", "delete from t where id = 1", 0),
        ("delete from t where id = 1", "commit", "select * from t where id = 1 for update", 0),
        ("update t set n = 5 where id = 1", "commit", "select * from t where n = 5 or id = 1 for share", 1),
        ("update t set id = 3 where id = 1", "commit", "update t set n = 0 where id = 1", 0),
    ],
)
def test_the_condition_is_evaluated_on_the_newest_version(
    node: Node, pair: tuple[Session, Session], change: str, end: str, statement: str, count: int
) -> None:
    first, second = pair
    second.execute("begin")
    second.execute("select * from t")
    first.execute("begin")
    first.execute(change)
    assert while_waiting(node, second, statement, first, end)[1] == count
    second.execute("commit")


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_one_snapshot_cannot_move(node: Node, pair: tuple[Session, Session], level: str) -> None:
    first, second = pair
    second.execute(f"begin isolation level {level}")
    second.execute("select * from t where id = 1")
    first.execute("begin; update t set n = 11 where id = 1")
    with pytest.raises(errors.SerializationFailure) as caught:
        while_waiting(node, second, "update t set n = 12 where id = 1", first, "commit")
    assert caught.value.sqlstate == "40001"


def test_a_transaction_that_used_an_older_version_of_the_table_goes_on(pair: tuple[Session, Session]) -> None:
    first, second = pair
    second.execute("begin")
    second.execute("select * from t where id = 1")
    first.execute("alter table t add column c int")
    first.execute("update t set n = 11 where id = 1")
    second.execute("update t set n = 21 where id = 2")
    second.execute("update t set n = n + 1 where id = 1")
    second.execute("commit")
    assert sorted(first.execute("select * from t").rows) == [(1, 12, None), (2, 21, None)]


def test_large_statements_take_no_locks(node: Node, pair: tuple[Session, Session]) -> None:
    first, second = pair
    values = ", ".join(f"({i}, 0)" for i in range(10, 11 + LOCKED_ROWS_MAX))
    first.execute(f"begin; insert into t values {values}")
    assert not len(node.epoch.locks)
    second.execute("begin")
    second.execute("insert into t values (10, 1)")
    first.execute("commit")
    # Run again, the statement meets the row.
    with pytest.raises(errors.UniqueViolation):
        second.execute("commit")


def test_a_row_whose_lock_was_lost_is_a_conflict_when_another_node_changed_it(
    tmp_path: Path, node: Node, pair: tuple[Session, Session]
) -> None:
    other = open_quiet(tmp_path, "other")
    remote = Session(other)
    try:
        for lock, change in (("for update", "update t set n = 0 where id = 1"), ("for key share", "delete from t")):
            pair[0].execute("begin")
            pair[0].execute(f"select * from t where id = 1 {lock}")
            pair[0].execute("insert into t values (100, 0)")
            transaction = pair[0].open_transaction
            assert transaction is not None
            # Locks decide nothing: without one in the catalog the other node does not wait.
            node.parts.catalog.release_locks(node.epoch.epoch, transaction.state.write_locks.owner)
            remote.execute(change)
            with pytest.raises(errors.SerializationFailure):
                pair[0].execute("commit")
    finally:
        remote.close()
        other.close()


def test_copy_of_values_that_no_longer_fit_the_first_shape_is_run_again(pair: tuple[Session, Session]):
    block, other = pair
    block.execute("begin")
    block.execute("select * from t")
    other.execute("alter table t alter column n type bigint")
    other.execute("insert into t values (3, 3000000000)")
    copied = io.StringIO()
    assert block.copy_out("select n from t order by id", copied, copy_format("text", False, None, None)) == 3
    assert copied.getvalue().split() == ["10", "20", "3000000000"]
    block.execute("commit")
