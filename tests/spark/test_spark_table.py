"""Tables as DataFrames: what Spark reads of them, how long, and what it is refused."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import seachange
from seachange import errors
from seachange.engine.api import Connection
from tests.spark.frames import frame_rows, table_rows


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    opened = seachange.connect(data=tmp_path / "data", autocommit=True)
    opened._node.maintenance.paused = True
    opened.execute("create table t (id integer primary key, v text, n smallint)")
    opened.load_arrow("t", pa.table({"id": pa.array(range(1000), pa.int32()), "v": ["x"] * 1000, "n": [5] * 1000}))
    opened.execute("delete from t where id = 3")
    yield opened
    opened.close()


def plan_of(frame: object) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())  # type: ignore[attr-defined]


def test_columns_are_pruned_and_conditions_pushed_to_the_files(db: Connection, spark: SparkSession) -> None:
    db.execute("alter table t alter column n type bigint")
    db.execute("alter table t add column later text default 'l'")
    frame = db.spark_table("t", spark).where("id > 990 and n = 5").select("id", "later")
    plan = plan_of(frame)
    assert "GreaterThan(c1,990)" in plan
    assert "EqualTo(c3,5)" in plan
    assert "ReadSchema: struct<c1:int,c3:smallint," in plan
    assert "c2" not in plan
    assert not {"BatchEvalPython", "ArrowEvalPython", "Scan ExistingRDD"} & set(plan.split())
    assert frame_rows(frame) == {(i, "l"): 1 for i in range(991, 1000)}


def rewrite(db: Connection) -> int:
    """Rewrites all rows, and deletes the files that no snapshot needs; returns the number of deleted files."""
    db.execute("update t set n = n + 1")
    db.compact("t")
    return db._node.collect_garbage(0)


def test_a_frame_keeps_its_snapshot_until_its_transaction_ends(db: Connection, spark: SparkSession) -> None:
    other = seachange.connect(data=db._node.parts.data, autocommit=True)
    db.execute("begin")
    frame = db.spark_table("t", spark)
    expected = table_rows(db, "t")
    assert rewrite(other) == 0
    # The transaction itself goes on to what is committed now.
    assert table_rows(db, "t") != expected
    assert frame_rows(frame) == expected
    db.execute("commit")
    assert rewrite(other) > 0
    other.close()


def test_without_a_transaction_it_keeps_it_until_the_connection_is_closed(db: Connection, spark: SparkSession) -> None:
    other = seachange.connect(data=db._node.parts.data, autocommit=True)
    frame = other.spark_table("t", spark)
    expected = table_rows(db, "t")
    assert rewrite(db) == 0
    assert frame_rows(frame) == expected
    other.close()
    assert rewrite(db) > 0
    # A file that is gone is an error, whatever the session says, and never fewer rows.
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist"):
            frame_rows(frame)
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_time_travel(db: Connection, spark: SparkSession) -> None:
    at = db.node_statistics()["applied"]
    expected = table_rows(db, "t")
    db.execute("delete from t where id < 500")
    db.execute(f"set seachange.as_of = {at}")
    assert frame_rows(db.spark_table("t", spark)) == expected


def test_an_empty_table_has_its_columns(db: Connection, spark: SparkSession) -> None:
    db.execute("create table e (u uuid, at time, d numeric(5,2))")
    assert db.spark_table("e", spark).dtypes == [("u", "string"), ("at", "string"), ("d", "decimal(5,2)")]
    assert frame_rows(db.spark_table("e", spark)) == {}
    db.execute("insert into e values (null, '10:00', 1.5)")
    spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        assert dict(db.spark_table("e", spark).dtypes)["at"] == "time(6)"
        assert frame_rows(db.spark_table("e", spark)) == table_rows(db, "e")
    finally:
        spark.conf.unset("spark.sql.timeType.enabled")


def test_labels_of_an_enum_type_are_those_of_today(db: Connection, spark: SparkSession) -> None:
    db.execute("create type mood as enum ('sad', 'glad')")
    db.execute("create table felt (id integer primary key, m mood default 'sad', n mood default 'glad')")
    db.execute("insert into felt (id) values (1), (2)")
    db.execute("alter type mood rename value 'sad' to 'blue'")
    db.execute("alter table felt add column later mood default 'blue'")
    frame = db.spark_table("felt", spark)
    assert frame_rows(frame) == table_rows(db, "felt") == {(i, "blue", "glad", "blue"): 1 for i in (1, 2)}
    # Written again, labels are what rows hold; what is none is refused.
    assert db.insert_dataframe("felt", frame.selectExpr("id + 2 as id", "m")) == 2
    assert frame_rows(db.spark_table("felt", spark)) == table_rows(db, "felt")
    assert db.execute("select count(*) from felt where m = 'blue'").fetchall() == [(4,)]
    with pytest.raises(errors.InvalidTextRepresentation, match="sad"):
        db.insert_dataframe("felt", frame.selectExpr("id + 4 as id", "'sad' as m"))


def test_what_is_no_table_is_refused(db: Connection, spark: SparkSession) -> None:
    db.execute("create view shown as select 1 as one")
    with pytest.raises(errors.UndefinedTable):
        db.spark_table("missing", spark)
    with pytest.raises(errors.WrongObjectType):
        db.spark_table("shown", spark)
