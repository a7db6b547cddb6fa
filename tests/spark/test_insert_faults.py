"""A DataFrame into a table while attempts fail, workers die and commits conflict: each row is there once, or none."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

import seachange
from seachange import errors
from seachange.engine.api import Connection
from seachange.pipeline.spark.host import Application
from seachange.runtime.faults import FAULTS
from tests.changer.changing import ask
from tests.spark import flaky
from tests.spark.flaky import ArmedWorker, FailsAtTheEnd
from tests.spark.test_insert_dataframe import database, numbers
from tests.support.nodes import Place

ROWS = 3_000


@pytest.fixture(scope="module", autouse=True)
def sent_along() -> Iterator[None]:
    cloudpickle.register_pickle_by_value(flaky)
    yield
    cloudpickle.unregister_pickle_by_value(flaky)


def prepare(db: Connection) -> None:
    db.execute("create table parent (id int primary key)")
    db.execute("insert into parent values (1), (2)")
    db.execute("create table t (id bigint primary key, w text, parent int references parent (id))")
    db.execute("create unique index by_w on t (w)")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    """Whatever happens in it, data and indexes agree at the end, and no file is left over."""
    with database(Place(tmp_path / "data")) as opened:
        prepare(opened)
        yield opened
        FAULTS.disarm()


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    made = tmp_path / "marks"
    made.mkdir()
    return made


def frame(spark: SparkSession, parent: int = 1) -> DataFrame:
    return numbers(spark, ROWS, 4).selectExpr("id", "concat('w', id) as w", f"{parent} as parent")


def assert_each_row_once(db: Connection) -> None:
    counted = "select count(*), count(distinct id), count(distinct w), min(id), max(id) from t"
    assert db.execute(counted).fetchall() == [(ROWS, ROWS, ROWS, 0, ROWS - 1)]
    assert db.execute("select id from t where w = 'w2999'").fetchall() == [(2_999,)]


@pytest.mark.parametrize(("how", "local_rows"), [("raise", 0), ("die", 1_000_000)])
def test_a_partition_that_fails_when_its_rows_are_written(
    db: Connection, spark: SparkSession, marks: Path, how: str, local_rows: int
) -> None:
    db.execute(f"set seachange.local_rows = {local_rows}")
    rows = frame(spark)
    assert db.insert_dataframe("t", rows.mapInArrow(FailsAtTheEnd(marks, how), rows.schema)) == ROWS
    assert [mark.name for mark in marks.iterdir()] == [f"{how}-1"]
    assert_each_row_once(db)


def test_a_worker_that_dies_when_its_segment_is_published(
    tmp_path: Path, spark: SparkSession, application: Application, marks: Path
) -> None:
    mark, data = marks / "died", tmp_path / "data"
    with seachange.connect(data=data, autocommit=True) as db:
        prepare(db)
        db.execute("set seachange.local_rows = 0")
        db.execute("set seachange.pipeline_unit_rows = 500")
        assert application._context.parallelize(range(2), 2).map(ArmedWorker(mark)).collect() == [0, 1]
        assert db.insert_dataframe("t", frame(spark)) == ROWS
        assert mark.exists()
        events = [text for (text,) in db.execute("select event from seachange.events").fetchall()]
        assert any("retried" in text for text in events)
        assert_each_row_once(db)
    # What the dead worker has published is kept for as long as the node lives: it might still be writing.
    with database(Place(data)) as later:
        assert_each_row_once(later)


def replace_parent(db: Connection) -> None:
    """Another session deletes a parent and inserts it again: a transaction that relied on it starts again."""
    ask(db._node, "delete from parent where id = 2")
    ask(db._node, "insert into parent values (2)")


def test_a_conflict_is_tried_again_with_the_same_rows(db: Connection, spark: SparkSession) -> None:
    FAULTS.arm("commit.queued", lambda: replace_parent(db))
    assert db.insert_dataframe("t", frame(spark, parent=2)) == ROWS
    # Its own, those of the other session, and its own again.
    assert FAULTS.counts()["commit.queued"] == 4
    assert_each_row_once(db)


def test_a_conflict_of_a_block_is_its_clients(db: Connection, spark: SparkSession) -> None:
    for attempt in range(2):
        db.execute("begin")
        assert db.insert_dataframe("t", frame(spark, parent=2)) == ROWS
        if attempt:
            db.execute("commit")
            continue
        replace_parent(db)
        with pytest.raises(errors.SerializationFailure):
            db.execute("commit")
        db.execute("rollback")
        assert db.execute("select count(*) from t").fetchall() == [(0,)]
    assert_each_row_once(db)
