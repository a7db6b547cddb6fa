"""The queries of TPC-H over tables of which one row in a hundred was updated, and over the same tables compacted.

The peer reads the same rows, with the updates done, from one Parquet file per
table; every result is compared with the peer's before anything is timed.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from statistics import geometric_mean, median

from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample
from bench.peers.client import Client, run_subject
from bench.peers.plain_duckdb import PlainTables
from bench.peers.protocol import plain_rows
from bench.tpch import generate, schema
from bench.tpch.queries import queries_at

# Results are money and averages: cents may differ where sums were added up in
# another order or rounded.
TOLERANCE = {"rel_tol": 1e-6, "abs_tol": 0.011}
WORST_SHOWN = 3

Rows = Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class Times:
    """The milliseconds of one query on both sides, one value per round."""

    query: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return median(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))


def prepare(subject: Client, context: Context) -> dict[str, Path]:
    """Loads and updates the tables; gives the files that hold the same rows."""
    subject.request("open", folder=str(context.folder("tpch")), key="")
    subject.request("pause_compaction")
    paths = generate.generate(context.folder("plain"), context.scale.tpch_factor)
    for table, path in paths.items():
        subject.request("execute", sql=schema.create_sql(table))
        subject.request("load", source=str(path), table=table)
        subject.request("compact", table=table)
    for table in schema.UPDATES:
        subject.request("execute", sql=schema.update_sql(table))
        target = paths[table].with_stem(f"{table}-updated")
        generate.update(paths[table], target, table)
        paths[table] = target
    return paths


@dataclass(frozen=True, slots=True)
class First:
    """What the first run of every query told: its milliseconds, or why it is refused."""

    milliseconds: Mapping[str, float]
    refused: Mapping[str, str]


def run_first(subject: Client, plain: PlainTables, queries: Mapping[str, str]) -> First:
    milliseconds, refused = {}, {}
    for name, sql in queries.items():
        answer = subject.request("query", sql=sql)
        if "refused" in answer:
            refused[name] = answer["refused"]
            continue
        milliseconds[name] = answer["seconds"] * 1000
        assert are_same(answer["rows"], plain_rows(plain.query(sql)[1])), f"{name} differs from the peer's result"
    return First(milliseconds, refused)


def are_same(ours: Rows, theirs: Rows) -> bool:
    return len(ours) == len(theirs) and all(
        len(mine) == len(other) and all(map(are_same_values, mine, other))
        for mine, other in zip(ours, theirs, strict=True)
    )


def are_same_values(mine: object, other: object) -> bool:
    if isinstance(mine, float) and isinstance(other, float):
        return isclose(mine, other, **TOLERANCE)
    return mine == other


def time_query(subject: Client, plain: PlainTables, name: str, sql: str, rounds: int) -> Times:
    """Both sides in turns."""
    pairs = [(subject.request("query", sql=sql)["seconds"] * 1000, plain.query(sql)[0] * 1000) for _ in range(rounds)]
    ours, theirs = zip(*pairs, strict=True)
    return Times(name, ours, theirs)


def compare(subject: Client, plain: PlainTables, name: str, context: Context) -> Iterable[Reading]:
    """The geometric mean of the queries' times, round by round, after one run that does not count."""
    queries = queries_at(context.scale.tpch_factor)
    first = run_first(subject, plain, queries)
    times = [time_query(subject, plain, query, queries[query], context.scale.rounds) for query in first.milliseconds]
    yield Reading(f"{name}.first", "ms", Sample((geometric_mean(first.milliseconds.values()),)), None, "first runs")
    yield Reading(name, "ms", means(t.ours for t in times), means(t.theirs for t in times), note(times, first.refused))


def means(samples: Iterable[tuple[float, ...]]) -> Sample:
    return Sample(tuple(geometric_mean(values) for values in zip(*samples, strict=True)))


def note(times: Sequence[Times], refused: Mapping[str, str]) -> str:
    worst = sorted(times, key=lambda t: t.ratio, reverse=True)[:WORST_SHOWN]
    parts = [f"{len(times)} queries, worst " + ", ".join(f"{t.query} {t.ratio:.2f}" for t in worst)]
    parts += [f"{len(refused)} refused"] if refused else []
    return "; ".join([*parts, *(f"{query} {reason}" for query, reason in refused.items())])


def tpch(context: Context) -> Iterable[Reading]:
    with run_subject() as subject, closing(PlainTables(prepare(subject, context))) as plain:
        yield from compare(subject, plain, "tpch.updated", context)
        for table in schema.TABLES:
            subject.request("compact", table=table)
        yield from compare(subject, plain, "tpch.compacted", context)
        subject.request("close")


MEASURES = (Measure("tpch", tpch, bounds_of("tpch")),)
