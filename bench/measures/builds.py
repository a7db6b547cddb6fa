"""Changes that move the rows of a large table: one index, two indexes, another type of a column; all sessions are
warm."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Context, Measure, Reading, Sample
from bench.peers.client import Client, run_spark_sql, run_subject
from bench.peers.plain_duckdb import write_sorted
from bench.peers.postgresql import run_postgresql

IN_PROCESS = "set seachange.local_rows = 1000000000"
ON_SPARK = "set seachange.local_rows = 0"
# Each takes back the one before, so that the table stays as it is. PostgreSQL takes both.
CONVERSIONS = (
    "alter table t alter column a type bigint using a::bigint * 2",
    "alter table t alter column a type integer using (a / 2)::integer",
)
# That the key is unique need not be shown: it has the primary key.
ADDED = {"k": "add constraint by_k unique (k, id)", "t": "add constraint by_t unique (t, id)"}
DROPPED = {name: f"drop constraint by_{name}" for name in ADDED}


@contextmanager
def large_table(context: Context, rows: int) -> Iterator[Client]:
    """A node with the bulk rows in base segments, whose statements run on Spark."""
    with run_subject() as subject:
        subject.request("open", folder=str(context.folder(f"seachange-{rows}")))
        subject.request("load", source=str(write_source(context.scratch, rows)))
        subject.request("compact")
        subject.request("warm_spark")
        yield subject
        subject.request("close")


def seconds_of(subject: Client, sql: str) -> float:
    # No measurement pays for unwritten data of another.
    os.sync()
    return float(subject.request("execute", sql=sql)["seconds"])


def build_seconds(subject: Client, setting: str) -> float:
    subject.request("execute", sql=setting)
    seconds = seconds_of(subject, "create index built on t (k)")
    subject.request("execute", sql="drop index built")
    return seconds


def one_index(context: Context) -> Iterable[Reading]:
    """An index on a text column, over three other ways to build the same one."""
    scale = context.scale
    source = write_source(context.scratch, scale.rows)
    ours: list[float] = []
    in_process: list[float] = []
    theirs: dict[str, list[float]] = {"spark_sql": [], "postgresql": [], "duckdb": []}
    with (
        large_table(context, scale.rows) as subject,
        run_spark_sql() as spark_sql,
        run_postgresql() as postgresql,
    ):
        spark_sql.request("open", folder=str(context.folder("spark-sql")))
        postgresql.load(context.scratch, scale.rows)
        built = str(context.scratch / "spark-sql" / "built")
        for _ in range(scale.rounds_long):
            ours.append(build_seconds(subject, ON_SPARK))
            in_process.append(build_seconds(subject, IN_PROCESS))
            os.sync()
            answer = spark_sql.request("build", source=str(source), target=built, key="k", row_key="id")
            theirs["spark_sql"].append(answer["seconds"])
            os.sync()
            theirs["postgresql"].append(postgresql.execute("create index concurrently built on t (k)"))
            postgresql.execute("drop index built")
            postgresql.settle()
            os.sync()
            target = context.scratch / "sorted.parquet"
            theirs["duckdb"].append(write_sorted(source, target, "k, id", "k, id"))
        spark_sql.request("close")
    notes = {
        "spark_sql": "repartitionByRange, sort and write of the entries",
        "postgresql": "CREATE INDEX CONCURRENTLY",
        "duckdb": "alone: the entries sorted and written",
    }
    for peer, note in notes.items():
        yield Reading(f"builds.index.{peer}", "s", Sample(tuple(ours)), Sample(tuple(theirs[peer])), note)
    yield Reading("builds.index.in_process", "s", Sample(tuple(in_process)), Sample(tuple(ours)), "over Spark's tasks")


def conversion(context: Context) -> Iterable[Reading]:
    """Another type by an expression: all rows are rewritten, here while the table is in use."""
    scale = context.scale
    ours: list[float] = []
    theirs: list[float] = []
    with large_table(context, scale.rows) as subject, run_postgresql() as postgresql:
        postgresql.load(context.scratch, scale.rows)
        for number in range(scale.rounds_long):
            text = CONVERSIONS[number % len(CONVERSIONS)]
            ours.append(seconds_of(subject, text))
            os.sync()
            theirs.append(postgresql.execute(text))
            postgresql.settle()
    note = "ALTER COLUMN TYPE with an expression; PostgreSQL locks the table meanwhile"
    yield Reading("builds.conversion", "s", Sample(tuple(ours)), Sample(tuple(theirs)), note)


def two_indexes(context: Context) -> Iterable[Reading]:
    """Two indexes by one statement, which reads the rows once, over two statements."""
    together: list[float] = []
    apart: list[float] = []
    with large_table(context, context.scale.rows) as subject:
        for _ in range(context.scale.rounds_long):
            together.append(seconds_of(subject, f"alter table t {', '.join(ADDED.values())}"))
            subject.request("execute", sql=f"alter table t {', '.join(DROPPED.values())}")
            apart.append(sum(one_of_two(subject, name) for name in ADDED))
        scans = subject.request("query", sql="select event from seachange.events where event like '%for Spark%: read%'")
        both = [text for (text,) in scans["rows"] if "by_k, by_t" in text]
        assert len(both) == context.scale.rounds_long, f"the rows were not read once for both: {scans['rows']}"
    note = "one statement, which reads the rows once, over two"
    yield Reading("builds.two_indexes", "s", Sample(tuple(together)), Sample(tuple(apart)), note)


def one_of_two(subject: Client, name: str) -> float:
    seconds = seconds_of(subject, f"alter table t {ADDED[name]}")
    subject.request("execute", sql=f"alter table t {DROPPED[name]}")
    return seconds


MEASURES = (
    Measure("builds.index", one_index, bounds_of("builds.index")),
    Measure("builds.conversion", conversion, bounds_of("builds.conversion")),
    Measure("builds.two_indexes", two_indexes, bounds_of("builds.two_indexes")),
)
