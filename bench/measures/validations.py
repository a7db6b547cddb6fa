"""What only reads the rows of a large table: whether all of them meet a constraint."""

from collections.abc import Iterable
from contextlib import closing

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Context, Measure, Reading, Sample
from bench.measures.builds import IN_PROCESS, ON_SPARK, large_table, seconds_of
from bench.peers.client import Client
from bench.peers.plain_duckdb import PlainParquet, write_sorted

CONDITION = "a >= 0 and b < 1e9 and t like 'text-%' and length(k) = 9"
# What Spark may take for itself.
SPARK_SECONDS = 1.0


def check_seconds(subject: Client, setting: str) -> float:
    subject.request("execute", sql=setting)
    seconds = seconds_of(subject, f"alter table t add constraint tried check ({CONDITION})")
    subject.request("execute", sql="alter table t drop constraint tried")
    return seconds


def check(context: Context) -> Iterable[Reading]:
    """The whole statement, over a count of the rows that break the condition."""
    scale = context.scale
    in_process: list[float] = []
    on_spark: list[float] = []
    theirs: list[float] = []
    plain_path = context.scratch / "plain.parquet"
    write_sorted(write_source(context.scratch, scale.rows), plain_path, "id")
    with large_table(context, scale.rows) as subject, closing(PlainParquet(plain_path)) as plain:
        for _ in range(scale.rounds):
            in_process.append(check_seconds(subject, IN_PROCESS))
            on_spark.append(check_seconds(subject, ON_SPARK))
            seconds, (broken,) = plain.aggregate(f"select count(*) from t where not ({CONDITION})")
            assert broken == 0
            theirs.append(seconds)
    peer = Sample(tuple(theirs))
    yield Reading("validations.check.in_process", "s", Sample(tuple(in_process)), peer, "ADD CHECK, in-process")
    beyond = Sample(tuple(max(seconds - SPARK_SECONDS, 0.0) for seconds in on_spark))
    yield Reading("validations.check.spark", "s", beyond, peer, f"ADD CHECK, on Spark, less {SPARK_SECONDS:g} s")


def unique(context: Context) -> Iterable[Reading]:
    """That no key is there twice, over the build of the index in which that is seen."""
    shown: list[float] = []
    built: list[float] = []
    with large_table(context, context.scale.rows) as subject:
        for _ in range(context.scale.rounds_long):
            seconds_of(subject, "create unique index only on t (k)")
            stages = subject.request(
                "query",
                sql="select stage, duration_ms from seachange.job_stages"
                " where job_id = (select max(job_id) from seachange.job_stages)",
            )
            took_ms = {what: float(milliseconds) for what, milliseconds in stages["rows"]}
            shown.append(took_ms["validation"] / 1000)
            built.append(took_ms["backfill"] / 1000)
            subject.request("execute", sql="drop index only")
    note = "the validation of a unique index, over its backfill"
    yield Reading("validations.unique", "s", Sample(tuple(shown)), Sample(tuple(built)), note)


MEASURES = (
    Measure("validations.check", check, bounds_of("validations.check")),
    Measure("validations.unique", unique, bounds_of("validations.unique")),
)
