"""Tables by `spark.read.format("seachange")` and `df.write`: what they show, write and refuse."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import seachange
from seachange.engine.api import Connection
from seachange.verify.consistency import inspect
from tests.spark.frames import frame_rows, table_rows
from tests.spark.test_insert_dataframe import ALL, VALUES, numbers


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    with seachange.connect(data=tmp_path / "data", autocommit=True) as opened:
        yield opened


def read(spark: SparkSession, data: Path, table: str = "t", **options: str) -> DataFrame:
    return spark.read.format("seachange").option("data", str(data)).options(**options).load(table)


def test_every_type_is_shown_as_by_spark_table(db: Connection, spark: SparkSession, tmp_path: Path) -> None:
    db.execute("create type mood as enum ('sad', 'glad')")
    db.execute(ALL)
    frame = numbers(spark, 8).selectExpr(
        "id", *(f"if(id = 7, null, {text}) as {name}" for name, text in VALUES.items())
    )
    db.insert_dataframe("t", frame)
    db.execute("alter table t add column e mood default 'sad', add column es mood[] default '{sad,glad}'")
    db.execute("alter table t add column n2 numeric, add column i2 inet default '10.0.0.1', add column xs uuid[]")
    db.execute("alter type mood rename value 'sad' to 'blue'")
    db.execute("update t set n2 = 1.5, e = 'glad' where id = 2")
    db.execute("delete from t where id = 3")
    shown = read(spark, tmp_path / "data")
    assert frame_rows(shown) == frame_rows(db.spark_table("t", spark))
    assert shown.schema == db.spark_table("t", spark).schema


def write(frame: DataFrame, data: Path, mode: str = "append", table: str = "t", **options: str) -> None:
    frame.write.format("seachange").option("data", str(data)).options(**options).mode(mode).save(table)


def spooled(data: Path) -> list[Path]:
    return list((data / "spool").iterdir())


def test_reads_a_snapshot_a_shape_and_chosen_columns(db: Connection, spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    db.execute("create table t (id int primary key, w text, n int)")
    db.execute("insert into t select i, 'w' || i, i % 3 from generate_series(1, 20) g(i)")
    db.compact("t")
    db.execute("create shape first")
    db.execute("delete from t where id = 1")
    ((before,),) = db.execute("select max(seq) from seachange.feed(array['t'])").fetchall()
    loaded = read(spark, data)
    db.execute("alter table t rename column w to word")
    db.execute("alter table t add column more text default 'x'")
    db.execute("update t set word = 'other' where id = 2")
    # A frame is of the snapshot of its load, however often it is used.
    assert loaded.columns == ["id", "w", "n"]
    assert loaded.where("w = 'w2'").count() == 1
    assert read(spark, data, as_of=str(before)).columns == ["id", "w", "n"]
    shown = read(spark, data, layout="first")
    assert shown.columns == ["id", "w", "n"]
    assert shown.where("w = 'other'").count() == 1
    chosen = read(spark, data, columns="more, ID")
    assert chosen.columns == ["more", "id"]
    assert frame_rows(chosen) == frame_rows(db.spark_table("t", spark).select("more", "id"))
    given = spark.read.format("seachange").option("data", str(data)).schema("id bigint, word string").load("public.t")
    assert frame_rows(given) == frame_rows(db.spark_table("t", spark).selectExpr("cast(id as bigint)", "word"))


def test_filters_leave_rows_out_before_spark_sees_them(db: Connection, spark: SparkSession, tmp_path: Path) -> None:
    db.execute("create table t (id bigint primary key, w text, d date, n numeric(9,2), at timestamptz)")
    db.execute(
        "insert into t select i, 'w' || i, date '2024-01-01' + i, i / 4.0, timestamptz '2024-01-01 00:00Z' "
        "+ i * interval '1 hour' from generate_series(1, 100) g(i)"
    )
    db.execute("insert into t (id) values (101)")
    whole = db.spark_table("t", spark)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition in (
            "id = 7",
            "id in (3, 5, 200)",
            "id > 98 and w is not null",
            "w like 'w9%'",
            "w is null",
            "d <= date'2024-01-05'",
            "n >= 24.5",
            "at < timestamp'2024-01-01 05:00:00Z'",
            "not (id < 99)",
        ):
            shown = read(spark, tmp_path / "data", pushFilters="true").where(condition)
            assert frame_rows(shown) == frame_rows(whole.where(condition)), condition
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_appends_overwrites_and_merges(db: Connection, spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    db.execute("create table t (id int primary key, w text, n int default 7, u uuid, d date, at timestamptz)")
    db.execute("create index by_w on t (w)")
    rows = numbers(spark, 6).selectExpr(
        "concat('w', id) as W",
        "cast(id as int) as id",
        "concat('00000000-0000-0000-0000-0000000000', lpad(id, 2, '0')) as u",
        "if(id = 0, date'1582-10-01', date'2024-02-29') as d",
        "if(id = 1, timestamp'1850-01-01 00:00:00Z', timestamp'2024-02-29 12:00:00.000001Z') as at",
    )
    write(rows, data)
    db.execute("create table same (id int primary key, w text, n int default 7, u uuid, d date, at timestamptz)")
    db.insert_dataframe("same", rows)
    assert table_rows(db, "t") == table_rows(db, "same")
    ((head,),) = db.execute("select max(seq) from seachange.feed(array['t'])").fetchall()
    write(numbers(spark, 4, first=4).selectExpr("cast(id as int) as id", "'new' as w"), data, merge_keys="id")
    found = db.execute("select id, w, n, u is null from t order by id").fetchall()
    kept = [(i, f"w{i}", 7, False) for i in range(4)]
    assert found == [*kept, *((i, "new", 7, i > 5) for i in range(4, 8))]
    assert db.execute(
        "select count(distinct seq), count(*) from seachange.feed(array['t'], since => %s)", (head,)
    ).fetchall() == [(1, 4)]
    assert db.merge_dataframe("t", numbers(spark, 2, first=7).selectExpr("cast(id as int) id", "'m' w"), ["id"]) == 2
    assert db.execute("select id from t where w = 'm' order by id").fetchall() == [(7,), (8,)]
    write(numbers(spark, 2).selectExpr("cast(id as int) as id"), data, "overwrite")
    assert db.execute("select id, w, n from t order by id").fetchall() == [(0, None, 7), (1, None, 7)]
    assert not inspect(db._node).anomalies
    assert spooled(data) == []


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"columns": "id, none"}, "42703"),
        ({"asof": "1"}, "no option asof"),
        ({"table": "v"}, "42809"),
    ],
)
def test_what_cannot_be_read_is_named(
    db: Connection, spark: SparkSession, tmp_path: Path, options: dict[str, str], shown: str
) -> None:
    db.execute("create table t (id int primary key)")
    db.execute("create view v as select 1 as one")
    with pytest.raises(Exception, match=shown):
        read(spark, tmp_path / "data", **options)


def test_what_cannot_be_written_is_named_and_leaves_nothing(
    db: Connection, spark: SparkSession, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    db.execute("create table t (id int primary key, n int check (n < 5), s smallint)")
    db.execute("insert into t values (3, 0, 0)")
    ids = numbers(spark, 10).selectExpr("cast(id as int) id")
    for frame, shown in (
        (ids.selectExpr("id as nope"), "42703"),
        (ids.selectExpr("id + 10 as id", "id as n"), "23514"),
        (ids.selectExpr("id + 10 as id", "id * 10000 as s"), r"22003|out of range"),
    ):
        with pytest.raises(Exception, match=shown):
            write(frame, data)
    assert db.execute("select * from t").fetchall() == [(3, 0, 0)]
    assert spooled(data) == []
