"""Bulk writes of a block beside changes of their tables: what the new version refuses, and how it is written."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.engine.transaction.rebase import rebase_writes
from seachange.engine.transaction.rebase_rows import Move
from seachange.engine.transaction.transaction import Transaction
from seachange.model.isolation import Isolation
from seachange.runtime.faults import FAULTS
from seachange.verify.consistency import check
from tests.engine.changing import new_index
from tests.engine.database import arrow, create, insert, rows
from tests.engine.test_states import ROWS

GIVEN = (
    "create table p (id int primary key)",
    "insert into p values (1), (2), (3)",
    "create table t (id int primary key, u int not null, n int)",
    "insert into t select i, i * 10, i from generate_series(1, 3) as s(i)",
)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with closing(open_node(tmp_path, None, "one")) as opened:
        opened.maintenance.paused = True
        yield opened


@pytest.fixture
def block(node: Node, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session that writes everything in bulk."""
    monkeypatch.setattr("seachange.sql.write.update.ROWS_MAX", 0)
    monkeypatch.setattr("seachange.sql.write.insert_select.ROWS_MAX", 0)
    with closing(Session(node)) as session:
        yield session


@pytest.fixture
def other(node: Node) -> Iterator[Session]:
    with closing(Session(node)) as session:
        session.execute("set seachange.drain_timeout = '1ms'")
        for statement in GIVEN:
            session.execute(statement)
        yield session


REFUSED = {
    "a key of a new primary index": (
        "update t set u = u + 10 where id < 2",
        "alter table t alter primary key using columns (u)",
    ),
    "two of its own keys": ("update t set u = 5 where id < 3", "create unique index on t (u)"),
    "a key of another row": ("insert into t select 9, 30, 9", "create unique index on t (u)"),
    "a check": ("update t set u = -1 where id < 2", "alter table t add check (u > 0)"),
    "a required value": ("update t set n = null where id < 2", "alter table t alter column n set not null"),
    "a row that refers to nothing": (
        "update t set n = 7 where id < 2",
        "alter table t add foreign key (n) references p",
    ),
    "a row that is referred to": (
        "delete from p where id > 1 and id < 3",
        "alter table t add foreign key (n) references p",
    ),
    "a value that cannot be converted": (
        "update t set n = 0 where id < 2",
        "alter table t alter column n type int using 6 / n",
    ),
}


@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_the_new_version_refuses(node: Node, block: Session, other: Session, case: str, level: str):
    work, change = REFUSED[case]
    before = other.execute("select * from t order by id").rows
    block.execute(f"begin isolation level {level}")
    block.execute(work)
    other.execute(change)
    with pytest.raises((errors.IntegrityError, errors.DataError)):
        block.execute("commit")
    assert [row[0] for row in other.execute("select * from t order by id").rows] == [row[0] for row in before]
    assert check(node) == []


def test_rows_of_files_take_part_in_a_new_foreign_key(node: Node, block: Session, other: Session):
    block.execute("begin")
    block.execute("update t set n = 3 where id < 2")
    other.execute("alter table t add foreign key (n) references p on delete cascade")
    block.execute("commit")
    other.execute("delete from p where id = 3")
    assert other.execute("select id from t order by id").rows == [(2,)]
    assert check(node) == []


def test_files_come_back_with_a_savepoint(node: Node, block: Session, other: Session):
    block.execute("begin")
    block.execute("update t set u = u + 1")
    block.execute("savepoint s")
    other.execute("create unique index on t (u)")
    other.execute("alter table t add column g int generated always as (u * 2) stored")
    assert block.execute("select sum(u) from t").rows == [(63,)]
    block.execute("update t set u = u + 1")
    block.execute("rollback to savepoint s")
    assert block.execute("select sum(u) from t").rows == [(63,)]
    block.execute("commit")
    assert other.execute("select u, g from t order by id").rows == [(11, 22), (21, 42), (31, 62)]
    assert check(node) == []


def test_a_change_of_rows_that_were_changed_stays_in_files(node: Node, block: Session, other: Session):
    other.execute("create index on t (u)")
    block.execute("begin")
    block.execute("update t set u = u + 1")
    block.execute("update t set u = u + 1, n = 0 where id < 3")
    block.execute("insert into t select 4, 40, 4")
    block.execute("delete from t where id in (1, 4)")

    def entries(txn: Transaction) -> int:
        return sum(len(buffer.entries) for buffer in txn.state.buffer.indexes.values())

    assert block.in_transaction(entries) == 0
    block.execute("commit")
    assert other.execute("select * from t order by id").rows == [(2, 22, 0), (3, 31, 3)]
    assert check(node) == []


@pytest.mark.parametrize("how", ["rows", "load"])
def test_writes_are_rebased_on_a_version_that_is_not_published(node: Node, how: str):
    table = create(node)
    insert(node, *ROWS)
    txn = node.begin(Isolation.READ_COMMITTED)
    if how == "rows":
        txn.writes.insert(table, [(4, "four", 4)])
    else:
        txn.writes.insert_arrow(table, arrow(table, [(4, "four", 4)]))
    state, mark = txn.state, txn.undo.mark()
    index = new_index(node, "later", [table.columns[1].id], unique=False)
    coming = replace(table, secondary=(*table.secondary, index), version=table.version + 1)
    at = state.snapshot.seq
    rebase_writes(state, txn.reads, txn._foreign_keys, [Move(table, (coming,), at)], at)
    assert {plan.index.id for plan in state.parts.write_plan(coming).entries} == set(state.buffer.indexes)
    txn.undo.reset(mark)
    assert set(state.buffer.indexes) == {plan.index.id for plan in state.parts.write_plan(table).entries}
    txn.commit()
    assert (4, "four", 4) in rows(node)


def test_a_change_fails_for_a_row_in_a_file_that_has_no_value(node: Node, block: Session, other: Session):
    """While the column is not in view, the change fails and not the row."""
    block.execute("begin")
    block.execute("update t set n = 0 where id < 2")

    def commit() -> None:
        block.execute("commit")

    FAULTS.arm("job.attached", commit)
    try:
        with pytest.raises(errors.DataError):
            other.execute("alter table t alter column n type int using 6 / n")
    finally:
        FAULTS.disarm()
    assert other.execute("select n from t order by id").rows == [(0,), (2,), (3,)]
    assert check(node) == []
