"""Aggregates over a large table of which a few rows were updated since compaction."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from bench.bounds import bounds_of
from bench.data import sample_ids, write_source
from bench.harness import Context, Measure, Reading, Sample, interleave
from bench.peers.client import Client, run_subject
from bench.peers.plain_duckdb import PlainParquet, write_sorted
from bench.rows import text_key

# The sum of `a` comes first in each: updates add one to it, so it shows
# whether the scan saw all of them. All columns are numbers: comparing text
# would cost more than the scan and hide what visibility adds to it.
QUERIES = {
    "one_column": "select sum(a) from t",
    "three_columns": "select sum(a), sum(b), max(id) from t",
}


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the updated rows lie: a share of the range of ids, in a table with that key."""

    name: str
    key: str
    first_share: float
    last_share: float


SPREADS = (
    Spread("scans.clustered", "id", 0.4, 0.5),
    Spread("scans.uniform", "id", 0.0, 1.0),
    Spread("scans.text_key", "k", 0.0, 1.0),
)


def prepare(subject: Client, spread: Spread, context: Context) -> PlainParquet:
    """The same rows on both sides, sorted by the key; then the updates on ours."""
    source = write_source(context.scratch, context.scale.rows)
    subject.request("open", folder=str(context.folder(spread.name)), key=spread.key)
    subject.request("load", source=str(source))
    subject.request("compact")
    subject.request("update", key=spread.key, values=updated_keys(spread, context))
    plain = context.scratch / f"{spread.name}.parquet"
    write_sorted(source, plain, spread.key)
    return PlainParquet(plain)


def updated_keys(spread: Spread, context: Context) -> list[int] | list[str]:
    rows = context.scale.rows
    first, last = int(rows * spread.first_share), int(rows * spread.last_share)
    ids = sample_ids(first, last, context.scale.rows_updated)
    return ids if spread.key == "id" else [text_key(row_id) for row_id in ids]


def first(subject: Client, name: str, query: str) -> Reading:
    """The first scan after the updates finds the superseded rows, and decodes what later ones have in memory."""
    return Reading(name, "ms", Sample((subject.request("aggregate", sql=query)["seconds"] * 1000,)))


def compare(subject: Client, plain: PlainParquet, name: str, query: str, context: Context) -> Reading:
    """Milliseconds of one query on both sides, in turns, after one run that does not count."""
    updated = context.scale.rows_updated
    _, (plain_sum, *_rest) = plain.aggregate(query)
    (subject_sum, *_rest) = subject.request("aggregate", sql=query)["row"]
    assert isinstance(plain_sum, int)
    assert subject_sum == plain_sum + updated, f"{subject_sum} is not {plain_sum} + {updated}"
    before = subject.request("compactions")
    ours, theirs = interleave(
        context.scale.repetitions,
        lambda _: subject.request("aggregate", sql=query)["seconds"] * 1000,
        lambda _: plain.aggregate(query)[0] * 1000,
    )
    folded = subject.request("compactions") != before
    return Reading(name, "ms", ours, theirs, "a compaction ran meanwhile" if folded else "")


def scan(spread: Spread, context: Context) -> Iterable[Reading]:
    with run_subject() as subject, closing(prepare(subject, spread, context)) as plain:
        yield first(subject, f"{spread.name}.first", QUERIES["one_column"])
        for columns, query in QUERIES.items():
            yield compare(subject, plain, f"{spread.name}.{columns}", query, context)
        subject.request("close")


MEASURES = tuple(Measure(spread.name, partial(scan, spread), bounds_of(spread.name)) for spread in SPREADS)
