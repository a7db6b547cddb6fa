"""Whatever a table has been through, its DataFrame has the rows that a query shows."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import seachange
from seachange.engine.api import Connection
from tests.spark.frames import frame_rows, table_rows

# A type, its values as SQL text, and what a column of it can be widened to.
TYPES: list[tuple[str, list[str], str | None]] = [
    ("boolean", ["true", "false"], None),
    ("smallint", ["-32768", "7"], "integer"),
    ("integer", ["0", "2147483647"], "bigint"),
    ("bigint", ["-9223372036854775808", "5"], None),
    ("real", ["1.5", "'nan'", "'-inf'"], "double precision"),
    ("double precision", ["0.1", "'nan'", "-0.0"], None),
    ("numeric(9,2)", ["1.50", "-9999999.99"], "numeric(12,2)"),
    ("numeric(38,18)", ["0.000000000000000001", "12345678901234567890.5"], None),
    ("text", ["''", "'ä ''quoted''\n'", "'x'"], None),
    ("varchar(5)", ["'ab'", "'fives'"], "text"),
    ("bytea", [r"'\x00ff'", r"'\x'"], None),
    ("date", ["'2024-02-29'", "'1582-10-01'"], None),
    ("time", ["'00:00:00'", "'23:59:59.999999'", "'08:30:00.5'"], None),
    ("timestamp", ["'2024-02-29 12:00:00.000001'", "'1850-01-01 00:00:00'"], None),
    ("timestamptz", ["'2024-02-29 12:00:00+02'", "'1850-01-01 00:00:00+00'"], None),
    ("char(3)", ["'a'", "'abc'"], None),
    ("name", ["'n'"], "text"),
    ("json", ["'{\"a\": 1}'", "'[]'"], None),
    ("jsonb", ["'{\"b\": [1, null]}'", "'\"x\"'"], None),
    ("inet", ["'10.0.0.1/8'", "'2001:db8::1'"], None),
    ("cidr", ["'10.0.0.0/8'", "'2001:db8::/32'"], "inet"),
    ("inet[]", ["'{10.0.0.1,null}'"], None),
    ("oid", ["0", "4294967295"], "bigint"),
    ("interval", ["'1 year 2 days 3.5 seconds'", "'-5 minutes'"], None),
    ("mood", ["'sad'", "'glad'"], None),
    ("mood[]", ["'{sad,null}'", "'{}'"], None),
    ("integer[]", ["'{1,null,3}'", "'{}'"], None),
    ("uuid[]", ["'{00000000-0000-0000-0000-000000000001}'"], None),
    ("time[]", ["'{10:00,23:59:59.5}'"], None),
    ("numeric", ["1.5"], None),
    ("uuid", ["'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"], None),
]
STEPS = st.sampled_from(["insert", "bulk", "update", "delete", "add", "widen", "drop", "rename", "compact"])
PLAN = st.lists(st.tuples(STEPS, st.integers(0, 1_000)), min_size=4, max_size=8)


class History:
    """Statements that change a table of all types, or its rows, by a step and a number."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._next_id = self._names = 0
        self._columns = [(f"c{n}", n) for n in range(len(TYPES))]
        listed = ", ".join(f"{name} {TYPES[n][0]}" for name, n in self._columns)
        db.execute("create type mood as enum ('sad', 'ok', 'glad')")
        db.execute(f"create table t (id integer primary key, {listed})")

    def value(self, kind: int, number: int) -> str:
        values = TYPES[kind][1]
        return "null" if number % 4 == 3 else values[number % len(values)]

    def new_name(self) -> str:
        self._names += 1
        return f"n{self._names}"

    def step(self, step: str, number: int) -> None:
        name, kind = self._columns[number % len(self._columns)]
        match step:
            case "insert" | "bulk":
                ids = range(self._next_id, self._next_id + 3)
                self._next_id += 3
                if step == "bulk":
                    self._db.load_arrow("t", pa.table({"id": pa.array(ids, pa.int32())}))
                    self._db.execute(f"update t set {name} = {self.value(kind, number)} where id = {ids[0]}")
                    return
                for i in ids:
                    values = ", ".join(self.value(k, number + i + n) for n, (_, k) in enumerate(self._columns))
                    self._db.execute(f"insert into t values ({i}, {values})")
            case "update":
                self._db.execute(f"update t set {name} = {self.value(kind, number)} where id % 3 = {number % 3}")
            case "delete":
                self._db.execute(f"delete from t where id % 5 = {number % 5}")
            case "add":
                kind, added = number % len(TYPES), self.new_name()
                default = self.value(kind, number + 1)
                self._db.execute(f"alter table t add column {added} {TYPES[kind][0]} default {default}")
                self._columns.append((added, kind))
            case "widen":
                wider = TYPES[kind][2]
                if wider is not None:
                    self._db.execute(f"alter table t alter column {name} type {wider}")
            case "drop":
                if len(self._columns) > 4:
                    self._db.execute(f"alter table t drop column {name}")
                    self._columns.remove((name, kind))
            case "rename":
                renamed = f'"{self.new_name()} R"'
                self._db.execute(f"alter table t rename column {name} to {renamed}")
                self._columns[number % len(self._columns)] = (renamed, kind)
            case _:
                self._db.compact("t")


@contextmanager
def database() -> Iterator[Connection]:
    with tempfile.TemporaryDirectory(prefix="a [b] {c}*") as folder:
        db = seachange.connect(data=Path(folder), autocommit=True)
        try:
            yield db
        finally:
            db.close()


@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    before=PLAN, own=st.lists(st.tuples(st.sampled_from(["insert", "bulk", "update", "delete"]), st.integers(0, 99)))
)
def test_a_frame_has_the_rows_that_a_query_shows(
    spark: SparkSession, before: list[tuple[str, int]], own: list[tuple[str, int]]
) -> None:
    with database() as db:
        history = History(db)
        for step, number in before:
            history.step(step, number)
        frame = db.spark_table("t", spark)
        assert frame.columns == [item[0] for item in db.execute("select * from t").description or []]
        expected = table_rows(db, "t")
        assert frame_rows(frame) == expected
        db.execute("begin")
        for step, number in own:
            history.step(step, number)
        assert frame_rows(db.spark_table("t", spark)) == table_rows(db, "t")
        # The first frame has its own snapshot.
        assert frame_rows(frame) == expected
        db.execute("rollback")
