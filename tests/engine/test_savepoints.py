"""Savepoints: names, bulk loads, and rows that change shape and change it back."""

import pyarrow as pa
import pytest

import seachange
from seachange import errors
from seachange.engine.session.savepoints import Point, Savepoints


def point(name, mark):
    return Point(name, mark, ({}, {}), read_only=False, cursors={})


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


def test_a_bulk_load_is_taken_back(db):
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
