"""DataFrames into tables: what of a row is converted, drawn and checked, and what is left when it fails."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

import seachange
from seachange import errors
from seachange.engine.api import Connection
from seachange.values.interval import Interval
from seachange.verify.consistency import inspect
from tests.spark.frames import frame_rows, table_rows
from tests.support.nodes import Place

pytestmark = pytest.mark.either_catalog


@contextmanager
def database(place: Place) -> Iterator[Connection]:
    opened = seachange.connect(data=place.data, catalog=place.catalog, autocommit=True)
    opened._node.maintenance.paused = True
    try:
        yield opened
        assert not inspect(opened._node).anomalies
        leftovers(opened)
    finally:
        opened.close()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    with database(Place(tmp_path / "data")) as opened:
        yield opened


@pytest.fixture
def any_db(place: Place) -> Iterator[Connection]:
    """How files are announced, staged and given up is the catalog's."""
    with database(place) as opened:
        yield opened


def leftovers(db: Connection) -> None:
    """Nothing is left of what failed: no file that no commit names, no folder with rows."""
    db._node.collect_garbage(0)
    named = {f"{id_:016x}.parquet" for (id_,) in db.execute("select segment_id from seachange.segments").fetchall()}
    assert set(db._node.parts.files.names()) == named
    assert not list((db._node.parts.data / "spool").glob("*"))


def numbers(spark: SparkSession, count: int, partitions: int = 3, first: int = 0) -> DataFrame:
    return spark.range(first, first + count, 1, partitions)


ALL = """create table t (
    id bigint primary key, b boolean, s smallint, i integer, r real, d double precision, n numeric(9,2), w text,
    v varchar(5), y bytea, a date, m time, p timestamp, z timestamptz, u uuid, c char(3), j jsonb, k interval, o oid,
    l integer[], x text[])"""
VALUES = {
    "b": "id % 2 = 0",
    "s": "cast(id as smallint)",
    "i": "cast(-id as int)",
    "r": "cast(id / 4 as float)",
    "d": "case when id = 3 then double('nan') else id / 3 end",
    "n": "cast(id * 1.25 as decimal(12,3))",
    "w": "concat('ä''', id)",
    "v": "case when id = 2 then 'ab        ' else 'fives' end",
    "y": "unhex('00ff')",
    "a": "case when id = 1 then date'1582-10-01' else date'2024-02-29' end",
    "m": "'08:30:00.5'",
    "p": "case when id = 1 then timestamp_ntz'1850-01-01 00:00:00' else timestamp_ntz'2024-02-29 12:00:00.000001' end",
    "z": "case when id = 1 then timestamp'1850-01-01 00:00:00Z' else timestamp'2024-02-29 12:00:00.000001Z' end",
    "c": "'a'",
    "j": "to_json(named_struct('a', 1))",
    "k": "'1 year 2 days'",
    "o": "id",
    "l": "array(1, null, cast(id as int))",
    "x": "array('a', concat('b', id))",
    "u": "concat('00000000-0000-0000-0000-0000000000', lpad(id, 2, '0'))",
}


def test_every_type_goes_in_and_comes_out(db: Connection, spark: SparkSession) -> None:
    db.execute(ALL)
    frame = numbers(spark, 8).selectExpr(
        "id", *(f"if(id = 7, null, {text}) as {name}" for name, text in VALUES.items())
    )
    # Neither the order of columns nor, where Spark does not mind, their case.
    assert db.insert_dataframe("t", frame.select(*reversed(frame.columns)).withColumnRenamed("w", "W")) == 8
    rows = {row[0]: row[1:] for row in db.execute("select * from t").fetchall()}
    assert rows[7] == (None,) * 20
    moment = dt.datetime(1850, 1, 1)
    assert rows[1][:8] == (False, 1, -1, 0.25, pytest.approx(1 / 3), Decimal("1.25"), "ä'1", "fives")
    assert rows[1][9:13] == (dt.date(1582, 10, 1), dt.time(8, 30, 0, 500_000), moment, moment.replace(tzinfo=dt.UTC))
    assert rows[2][7] == "ab   "
    assert rows[2][14:] == ("a  ", '{"a": 1}', Interval(12, 2, 0), 2, [1, None, 2], ["a", "b2"])
    # What a DataFrame shows can be written again.
    db.execute(ALL.replace("table t", "table again"))
    assert db.insert_dataframe("again", db.spark_table("t", spark)) == 8
    assert table_rows(db, "again") == table_rows(db, "t") == frame_rows(db.spark_table("again", spark))


def test_defaults_hidden_keys_and_generated_columns(db: Connection, spark: SparkSession) -> None:
    db.execute(
        "create table t (serial serial, w text default 'none', at timestamptz default now(), "
        "u uuid default gen_random_uuid(), i integer, twice integer generated always as (i * 2) stored)"
    )
    db.execute("create index by_twice on t (twice) where i > 3")
    db.execute("begin")
    assert db.insert_dataframe("t", numbers(spark, 10).selectExpr("cast(id as int) as i")) == 10
    ((now,),) = db.execute("select now()").fetchall()
    rows = db.execute("select serial, w, at, i, twice from t order by serial").fetchall()
    assert [row[0] for row in rows] == list(range(1, 11))
    assert {row[1:3] for row in rows} == {("none", now)}
    assert sorted(row[3:] for row in rows) == [(i, i * 2) for i in range(10)]
    assert db.execute("select count(distinct u) from t").fetchall() == [(10,)]
    db.execute("commit")
    assert db.execute("select i from t where twice = 12 and i > 3").fetchall() == [(6,)]


REFUSED: list[tuple[str, str, str]] = [
    ("cast(id % 5 as int) as id, 'x' as w, 1 as n", "23505", r"\(id\)=\(\d\)"),
    ("cast(id + 95 as int) as id, 'x' as w, 1 as n", "23505", r"\(id\)=\(100\)"),
    ("cast(id as int) as id, 'x' as w, 1 as n, 5 as code", "23505", r"\(code\)=\(5\)"),
    ("cast(id as int) as id, if(id = 4, null, 'x') as w, 1 as n", "23502", r"failing row contains \(4, null, 1"),
    ("cast(id as int) as id, 'x' as w, if(id = 4, -1, 1) as n", "23514", r"positive.*4, x, -1"),
    ("cast(id as int) as id, 'x' as w, 1 as n, 7 as parent", "23503", r"\(parent\)=\(7\)"),
    (
        "cast(id as int) as id, if(id = 4, 'too long', 'x') as w, 1 as n",
        "22001",
        r"column \"w\" of the row with .*4, too",
    ),
    ("if(id = 4, 3000000000, id) as id, 'x' as w, 1 as n", "22003", r"column \"id\" of the row with .*3000000000"),
    ("cast(id as int) as id, 'x' as w, 'one' as n", "42804", "n"),
    ("cast(id as int) as id, 'x' as w, array(1) as n", "42804", r"integer\[\]"),
    ("cast(id as int) as id, 'x' as w, 1 as more", "42703", "more"),
    ("cast(id as int) as id, 'x' as w, 1 as n, 2 as N", "42701", "n"),
    ("cast(id as int) as id, 'x' as w, 1 as n, 2 as made", "428C9", "made"),
    ("cast(id as int) as id, 'x' as w, cast(1 / (id - 4) as int) as n", "22012", "DIVIDE_BY_ZERO"),
]


@pytest.fixture
def refusing(db: Connection) -> Connection:
    db.execute("create table parent (id integer primary key)")
    db.execute(
        "create table t (id integer primary key, w varchar(5) not null, n integer constraint positive check (n > 0), "
        "code integer unique, parent integer references parent (id), made integer generated always as (n + 1) stored)"
    )
    db.execute("insert into t (id, w, n) values (100, 'there', 1)")
    return db


@pytest.mark.parametrize("local_rows", [1000, 0], ids=["here", "on Spark"])
def test_what_is_refused_is_refused_as_a_whole(refusing: Connection, spark: SparkSession, local_rows: int) -> None:
    db = refusing
    db.execute(f"set seachange.local_rows = {local_rows}")
    before = table_rows(db, "t")
    for columns, state, words in REFUSED:
        with pytest.raises(errors.Error, match=words) as problem:
            db.insert_dataframe("t", numbers(spark, 10).selectExpr(*_split(columns)))
        assert problem.value.sqlstate == state, columns
        assert table_rows(db, "t") == before


def _split(columns: str) -> list[str]:
    """At commas that are not in brackets."""
    depth, found = 0, [""]
    for character in columns:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return found


def test_a_frame_is_part_of_its_transaction(any_db: Connection, spark: SparkSession) -> None:
    db = any_db
    db.execute("create table t (id bigint primary key, w text)")
    db.execute("insert into t select i, 'old' from generate_series(0, 9) g(i)")
    db.execute("begin")
    db.execute("delete from t where id < 5")
    db.execute("savepoint s")
    frame = numbers(spark, 5).select("id", F.lit("new").alias("w"))
    assert db.insert_dataframe("t", frame) == 5
    assert db.execute("select count(*) from t where w = 'new'").fetchall() == [(5,)]
    db.execute("rollback to s")
    assert db.execute("select count(*) from t").fetchall() == [(5,)]
    assert db.insert_dataframe("t", frame) == 5
    with pytest.raises(errors.UniqueViolation):
        db.insert_dataframe("t", frame)
    db.execute("rollback to s")
    assert db.insert_dataframe("t", frame.where("id = 1")) == 1
    db.execute("commit")
    assert table_rows(db, "t") == {(1, "new"): 1, **{(i, "old"): 1 for i in range(5, 10)}}
    assert db.insert_dataframe("t", frame.where("id < 0")) == 0


def test_units_are_written_on_spark(db: Connection, spark: SparkSession) -> None:
    db.execute("create table t (id bigint primary key, w text)")
    db.execute("create unique index by_w on t (w)")
    db.execute("set seachange.local_rows = 0")
    db.execute("set seachange.pipeline_unit_rows = 500")
    frame = numbers(spark, 3_000, 4).select("id", F.concat(F.lit("w"), F.col("id")).alias("w"))
    assert db.insert_dataframe("t", frame) == 3_000
    events = [text for (text,) in db.execute("select event from seachange.events").fetchall()]
    assert any("8 tasks to Spark application" in text and "of a DataFrame into t" in text for text in events)
    assert db.execute("select id from t where w = 'w2999'").fetchall() == [(2_999,)]
    with pytest.raises(errors.UniqueViolation, match=r"\(w\)=\(w\d+\)"):
        db.insert_dataframe("t", numbers(spark, 10, first=5_000).selectExpr("id", "concat('w', id - 4993) as w"))
