"""Savepoints: names, bulk loads, and rows that change shape and change it back."""

from contextlib import closing

import pyarrow as pa
import pytest

import seachange
from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.engine.session.transaction_block import Point, Savepoints
from seachange.verify.consistency import check


def point(name, mark):
    return Point(name, mark, ({}, {}), read_only=False, cursors={}, statements=0)


def test_a_name_means_its_newest_savepoint():
    points = Savepoints()
    for number, name in enumerate("aba"):
        points.push(point(name, number))
    assert points.back_to("a").mark == 2
    points.release("a")
    assert points.back_to("a").mark == 0
    with pytest.raises(errors.InvalidSavepoint):
        points.back_to("b")


@pytest.fixture
def db(tmp_path):
    with seachange.connect(tmp_path, autocommit=True) as connection:
        yield connection


def rows(n, start=0):
    ids = list(range(start, start + n))
    return pa.table({"id": pa.array(ids, pa.int32()), "n": pa.array([i * 10 for i in ids], pa.int32())})


def test_a_bulk_load_is_rolled_back(db):
    db.execute("create table t (id int primary key, n int)")
    db.execute("begin")
    db.load_arrow("t", rows(10))
    db.execute("savepoint a")
    db.load_arrow("t", rows(10, start=10))
    db.execute("delete from t where id < 5")
    assert db.execute("select count(*) from t").fetchall() == [(15,)]
    db.execute("rollback to a")
    assert db.execute("select count(*), min(id) from t").fetchall() == [(10, 0)]
    db.execute("commit")
    assert db.execute("select count(*), sum(n) from t").fetchall() == [(10, 450)]


def test_a_bulk_load_changes_shape_and_changes_it_back(db):
    db.execute("create table t (id int primary key, n int)")
    db.execute("begin")
    db.load_arrow("t", rows(10))
    db.execute("update t set n = 1 where id = 3")
    db.execute("savepoint a")
    db.execute("alter table t add column s text default 'x'")
    db.execute("update t set s = 'y' where id in (3, 4)")
    db.execute("rollback to a")
    assert db.execute("select * from t where id in (3, 4) order by id").fetchall() == [(3, 1), (4, 40)]
    db.execute("update t set n = 2 where id = 4")
    db.execute("commit")
    assert db.execute("select * from t where id in (3, 4) order by id").fetchall() == [(3, 1), (4, 2)]


def test_rows_first_written_after_a_change_of_shape_go_with_it(db):
    db.execute("create table t (id int primary key, n int)")
    db.execute("insert into t values (1, 10)")
    db.execute("begin")
    db.execute("savepoint a")
    db.execute("alter table t add column s text")
    db.execute("update t set s = 'x'")
    db.execute("rollback to a")
    db.execute("update t set n = 11")
    db.execute("commit")
    assert db.execute("select * from t").fetchall() == [(1, 11)]


# What a block did and undid, what another session does then, and what the block does with it.
UNDONE = {
    "relied on an empty table": ("create unique index on e (a)", "insert into e values (1)", "select * from e"),
    "relied on a type": ("create table x (c y)", "drop type y", "select 1"),
    "relied on a table": ("create view v as select * from e", "drop table e", "select 1"),
    "relied on a parent": ("insert into c values (1)", "delete from p where a = 1", "select 1"),
    "locked a row": ("select * from p where a = 1 for update", "delete from p where a = 1", "select * from p"),
    "emptied a table": ("truncate c", "insert into c values (2)", "insert into c values (2)"),
    "dropped a table": ("drop table e", "insert into e values (2)", "insert into e values (3)"),
    "changed a table": ("alter table e add column z int", "alter table e add column z text", "select z from e"),
    "used a name": ("create table n (a int)", "create table n (b int)", "select b from n"),
    "used a shape": ("select * from e", "alter table e drop column a, add column b int", "select b from e"),
}


@pytest.mark.parametrize("case", UNDONE)
def test_what_was_undone_stands_against_no_other_session(node: Node, case: str):
    inside, elsewhere, behind = UNDONE[case]
    with closing(Session(node)) as session, closing(Session(node)) as other:
        session.execute("create table e (a int); create type y as enum ('a'); create table u (a int)")
        session.execute("create table p (a int primary key); insert into p values (1), (2)")
        session.execute("create table c (a int references p)")
        session.execute("begin")
        session.execute("savepoint s")
        session.execute(inside)
        session.execute("rollback to s")
        other.execute("set lock_timeout = '10s'")
        other.execute(elsewhere)
        session.execute(behind)
        session.execute("insert into u values (1)")
        session.execute("commit")
        assert session.execute("select * from u").rows == [(1,)]
        assert check(node) == []


@pytest.mark.parametrize("change", ["create index on t (b)", "alter table t alter b type text using b || 'x'"])
@pytest.mark.parametrize("rows", [3, 11_000])
def test_rows_rebased_since_a_savepoint_are_as_before_it(node: Node, change: str, rows: int):
    """They conform to the version of then, and are rebased again by the next statement, or at COMMIT."""
    with closing(Session(node)) as session, closing(Session(node)) as other:
        session.execute("create table t (a int primary key, b int)")
        session.execute("insert into t values (1, 1), (2, 2)")
        session.execute("begin")
        session.execute(f"insert into t select i, i from generate_series(3, {rows}) i")
        session.execute("savepoint s")
        other.execute("set seachange.drain_timeout = '1ms'")
        other.execute(change)
        session.execute("delete from t where a = 1")
        session.execute("rollback to s")
        session.execute("delete from t where a = 2")
        session.execute("commit")
        assert session.execute("select count(*), min(a) from t").rows == [(rows - 1, 1)]
        assert check(node) == []
