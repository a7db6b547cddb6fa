"""Bulk load with a primary key, from one unsorted Parquet file on both sides."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Context, Measure, Reading, interleave
from bench.peers.client import run_subject
from bench.peers.plain_duckdb import write_sorted

MEGABYTE = 1024**2
LARGER = 2


def load(context: Context, folder: Path, rows: int) -> tuple[float, float]:
    """Seconds and peak memory in MB of one load in a process of its own."""
    source = write_source(context.scratch, rows)
    folder.mkdir(parents=True)
    with run_subject() as subject:
        subject.request("open", folder=str(folder))
        answer = subject.request("load", source=str(source))
        assert subject.request("count")["rows"] == rows, "rows were lost"
        subject.request("close")
    shutil.rmtree(folder)
    return answer["seconds"], answer["memory_bytes_max"] / MEGABYTE


def load_time(context: Context) -> Iterable[Reading]:
    """The load, over DuckDB writing the same rows sorted."""
    rows = context.scale.rows
    source = write_source(context.scratch, rows)
    target = context.scratch / "sorted.parquet"

    def subject(round_number: int) -> float:
        seconds, _ = load(context, context.scratch / "load" / str(round_number), rows)
        # Neither side pays for what the other left to be written.
        os.sync()
        return seconds

    def peer(_: int) -> float:
        seconds = write_sorted(source, target, "id")
        os.sync()
        return seconds

    ours, theirs = interleave(context.scale.rounds, subject, peer)
    yield Reading("bulk.load", "s", ours, theirs)


def load_memory(context: Context) -> Iterable[Reading]:
    """Peak memory of a load of twice the rows, over that of the load; both exceed what a sort may keep in memory."""
    rows = context.scale.rows
    ours, theirs = interleave(
        context.scale.rounds,
        lambda number: load(context, context.scratch / "twice" / str(number), LARGER * rows)[1],
        lambda number: load(context, context.scratch / "once" / str(number), rows)[1],
    )
    yield Reading("bulk.memory", "MB", ours, theirs, "twice the rows over the rows of bulk.load")


MEASURES = (
    Measure("bulk.load", load_time, bounds_of("bulk.load")),
    Measure("bulk.memory", load_memory, bounds_of("bulk.memory")),
)
