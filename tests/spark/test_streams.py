"""Streams from and into tables: what a query sees over schema changes, and after it ended at any moment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import seachange
from seachange.engine.api import Connection


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    with seachange.connect(data=tmp_path / "data", autocommit=True) as opened:
        yield opened


def changes(spark: SparkSession, data: Path, table: str = "t", **options: str) -> DataFrame:
    source = spark.readStream.format("seachange").option("data", str(data)).option("changes", "true")
    return source.options(**options).load(table)


def finish(writer: DataStreamWriter, checkpoint: Path) -> list[dict[str, Any]]:
    """All that is there; the progress of each batch with rows."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return [each for each in query.recentProgress if each["numInputRows"]]


def collect(frame: DataFrame, checkpoint: Path) -> list[Row]:
    found: list[Row] = []
    finish(frame.writeStream.foreachBatch(lambda rows, _: found.extend(rows.collect())), checkpoint)
    return sorted(found, key=lambda row: (row["_seq"], row["_ordinal"], row["_change"] == "update_after"))


def shown(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(*row[:-4], row["_change"]) for row in rows]


def test_a_stream_goes_on_over_schema_changes_in_its_shape(db: Connection, spark: SparkSession, tmp_path: Path) -> None:
    data, checkpoint = tmp_path / "data", tmp_path / "checkpoint"
    db.execute("create table t (id int primary key, w text, n int)")
    db.execute("insert into t values (1, 'a', 10), (2, 'b', 20)")
    db.execute("create shape first")
    options = {"layout": "first", "feed": "reader"}
    begun = collect(changes(spark, data, **options), checkpoint)
    assert sorted(shown(begun)) == [(1, "a", 10, "insert"), (2, "b", 20, "insert")]
    db.execute("update t set n = 11 where id = 1")
    db.execute("alter table t rename column w to word")
    db.execute("alter table t alter column n type text using n::text")
    db.execute("alter table t add column more int default 3")
    db.execute("insert into t values (3, 'c', '30', 4)")
    db.execute("vacuum full t")
    db.execute("delete from t where id = 2")
    db.execute("alter table t drop column word")
    db.execute("update t set n = '12' where id = 1")
    # The feed keeps the history that the stream still needs.
    db._node.collect_garbage(0)
    later = collect(changes(spark, data, **options), checkpoint)
    assert shown(later) == [
        (1, "a", 10, "update_before"),
        (1, "a", 11, "update_after"),
        (3, "c", 30, "insert"),
        (2, "b", 20, "delete"),
        (1, None, 11, "update_before"),
        (1, None, 12, "update_after"),
    ]
    assert collect(changes(spark, data, **options), checkpoint) == []
    ((position, lag),) = db.execute("select position, lag_rows from seachange.feeds where name = 'reader'").fetchall()
    assert position >= begun[0]["_seq"]
    assert lag <= 6


def test_a_stream_stops_at_a_schema_change_or_follows_it(db: Connection, spark: SparkSession, tmp_path: Path) -> None:
    data, checkpoint = tmp_path / "data", tmp_path / "checkpoint"
    db.execute("create table t (id int primary key, w text)")
    db.execute("insert into t values (1, 'a')")

    def stopped(mode: str) -> DataFrame:
        return changes(spark, data, schemaChanges=mode, startingPosition="latest")

    assert collect(stopped("stop"), checkpoint) == []
    frame = stopped("follow")
    db.execute("insert into t values (2, 'b')")
    db.execute("alter table t rename column w to word")
    db.execute("insert into t values (3, 'c')")
    with pytest.raises(Exception, match="55000"):
        collect(stopped("stop"), checkpoint)
    # Everything before the change has been delivered, and is not repeated.
    with pytest.raises(Exception, match=r"(?s)was changed by commit.*55000"):
        collect(frame, checkpoint)
    frame = stopped("follow")
    assert frame.columns[:2] == ["id", "word"]
    assert shown(collect(frame, checkpoint)) == [(3, "c", "insert")]
    db.execute("drop table t")
    with pytest.raises(Exception, match=r"42P01"):
        stopped("follow")


# The limits themselves are tested without Spark.
@pytest.mark.slow
def test_limits_divide_what_is_there_between_commits(db: Connection, spark: SparkSession, tmp_path: Path) -> None:
    db.execute("create table t (id int primary key)")
    for number in range(4):
        db.execute("insert into t select i from generate_series(%s, %s) g(i)", (number * 10, number * 10 + 9))
    counts = []

    def note(rows: DataFrame, _: int) -> None:
        counts.append(rows.count())

    frame = changes(spark, tmp_path / "data", maxRowsPerBatch="25", startingPosition="0")
    finish(frame.writeStream.foreachBatch(note), tmp_path / "checkpoint")
    assert [count for count in counts if count] == [20, 20]
