"""Point SELECTs by primary key: from a large table's files, and from the node's image."""

from collections.abc import Iterable
from contextlib import closing

from bench.bounds import bounds_of
from bench.data import sample_ids, write_source
from bench.harness import Context, Measure, Reading, Sample, interleave
from bench.peers.client import Client, run_subject
from bench.peers.plain_duckdb import PlainParquet


def look_up_rate(subject: Client, ids: list[int]) -> float:
    seconds: list[float] = subject.request("look_up", key="id", values=ids)["seconds"]
    return len(ids) / sum(seconds)


def plain_rate(plain: PlainParquet, ids: list[int]) -> float:
    return len(ids) / sum(plain.look_up(ids))


def stored(context: Context) -> Iterable[Reading]:
    """Rows that lie in files only, against DuckDB on the same rows unsorted."""
    scale = context.scale
    source = write_source(context.scratch, scale.rows)
    ids = sample_ids(0, scale.rows, scale.lookups)
    with run_subject() as subject, closing(PlainParquet(source)) as plain:
        subject.request("open", folder=str(context.folder("stored")))
        subject.request("load", source=str(source))
        subject.request("compact")
        look_up_rate(subject, ids[:1])
        plain_rate(plain, ids[:1])
        ours, theirs = interleave(
            scale.rounds,
            lambda number: look_up_rate(subject, part(ids, number, scale.rounds)),
            lambda _: plain_rate(plain, ids[: scale.lookups_peer]),
        )
        subject.request("close")
    yield Reading("points.stored", "/s", ours, theirs)


def part(ids: list[int], number: int, count: int) -> list[int]:
    """Other ids in each round, so that none is answered from what the last one left behind."""
    size = len(ids) // count
    return ids[number * size : (number + 1) * size]


def image(context: Context) -> Iterable[Reading]:
    """Rows that were just written, one statement text throughout."""
    scale = context.scale
    ids = sample_ids(0, scale.rows_in_image, scale.lookups)
    with run_subject() as subject:
        subject.request("open", folder=str(context.folder("image")))
        subject.request("commit", first_id=0, count=scale.rows_in_image)
        look_up_rate(subject, ids)
        rates = Sample(tuple(look_up_rate(subject, ids) for _ in range(scale.rounds)))
        subject.request("close")
    yield Reading("points.image", "/s", rates)


MEASURES = (
    Measure("points.stored", stored, bounds_of("points.stored")),
    Measure("points.image", image, bounds_of("points.image")),
)
