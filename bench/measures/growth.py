"""How statements grow with layouts and columns, a build with rows, and what a crash in the middle of one costs."""

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Context, Measure, Reading, Sample, interleave
from bench.measures.builds import seconds_of
from bench.peers.client import Client, run_subject

BUILD = "create index built on t (k)"
MEGABYTE = 1024**2
# So that a job without a node does not wait long for another.
SETTINGS = '[seachange]\nnode_expiry = "2s"\n'
LOOK_SECONDS = 0.1
WAIT_SECONDS_MAX = 120.0
LAYOUTS = 100
ROWS_PER_LAYOUT = 200
WIDE, NARROW = 1_000, 10
STATUS = """
    select status, extract(epoch from updated - (
        select max(moment) from seachange.events e where e.job_id = j.id and event like 'taken over%'))
    from seachange.jobs j where id = (select max(id) from seachange.jobs)
"""


@dataclass(frozen=True, slots=True)
class Build:
    rows: int
    seconds: float
    driver_bytes: int
    kernel_bytes: int


def load(context: Context, rows: int) -> Path:
    """A database with that many rows, loaded by a process whose memory is not measured."""
    folder = context.folder(f"grown-{rows}")
    source = write_source(context.scratch, rows)
    with run_subject() as loader:
        loader.request("open", folder=str(folder))
        loader.request("load", source=str(source))
        loader.request("compact")
        loader.request("close")
    source.unlink()
    return folder


def build_alone(context: Context, rows: int) -> Build:
    """The best of several builds, since a single one depends much on other load of the machine."""
    folder = load(context, rows)
    with run_subject() as subject:
        subject.request("open", folder=str(folder), key="")
        subject.request("warm_spark")
        seconds = []
        for _ in range(context.scale.rounds_long):
            seconds.append(seconds_of(subject, BUILD))
            subject.request("execute", sql="drop index built")
        memory = subject.request("memory")
        subject.request("close")
    shutil.rmtree(folder)
    return Build(rows, min(seconds), memory["driver"], memory["kernel"])


def size(context: Context) -> Iterable[Reading]:
    builds = [build_alone(context, rows) for rows in context.scale.rows_growing]
    small, large = builds[-2:]
    note = f"{large.rows:,} rows over {small.rows:,}"
    yield Reading("growth.size.time", "us/row", per_row(large), per_row(small), note)
    first = builds[0]
    yield Reading(
        "growth.size.first", "us/row", per_row(small), per_row(first), f"{small.rows:,} rows over {first.rows:,}"
    )
    for side in ("driver", "kernel"):
        ours, theirs = (Sample((getattr(build, f"{side}_bytes") / MEGABYTE,)) for build in (large, small))
        yield Reading(f"growth.size.{side}_memory", "MB", ours, theirs, note)


def per_row(build: Build) -> Sample:
    return Sample((build.seconds / build.rows * 1_000_000,))


def resume(context: Context) -> Iterable[Reading]:
    """The time that two processes work on a build when the first is killed in the middle, over an undisturbed build."""
    folder = load(context, context.scale.rows)
    (folder / "seachange.toml").write_text(SETTINGS)
    with run_subject() as first, run_subject() as second:
        for client in (first, second):
            client.request("open", folder=str(folder), key="")
            client.request("warm_spark")
        undisturbed = seconds_of(first, BUILD)
        first.request("execute", sql="drop index built")
        before = work_until(first, undisturbed / 2)
        after = finish(second)
        assert second.request("query", sql="select count(*) from t where k = 'none'")["rows"] == [[0.0]]
        second.request("close")
    note = "killed at half and finished by another node, over undisturbed"
    yield Reading("growth.resume", "s", Sample((before + after,)), Sample((undisturbed,)), note)


def work_until(client: Client, seconds: float) -> float:
    """Starts a build and kills the process after that time."""
    start = time.monotonic()
    client.send("execute", sql=BUILD)
    time.sleep(seconds)
    client.kill()
    return time.monotonic() - start


def finish(client: Client) -> float:
    """The seconds from when the node resumed the build until it is done, by the event log."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        ((status, seconds),) = client.request("query", sql=STATUS)["rows"]
        if status == "succeeded":
            return float(seconds)
        assert status == "running", f"the build is {status}"
        time.sleep(LOOK_SECONDS)
    raise AssertionError("the build was not finished")


def layouts(context: Context) -> Iterable[Reading]:
    """Rows that were written in many layouts, over the same rows in one layout."""
    note = f"{LAYOUTS} layouts over one"
    with run_subject() as subject:
        subject.request("open", folder=str(context.folder("layouts")), key="")
        for table, added_first in (("many", False), ("few", True)):
            grow_by_layouts(subject, table, added_first)
        last = f"c{LAYOUTS - 1}"
        for name, text in (
            ("scan", f"select count(*), sum(n), count({last}) from {{table}}"),
            ("point", "select n from {table} where id = 5"),
        ):
            yield compared(subject, context, f"growth.layouts.{name}", text, "many", "few", note)
        subject.request("close")


def grow_by_layouts(subject: Client, table: str, added_first: bool) -> None:
    subject.request("execute", sql=f"create table {table} (id bigint primary key, n bigint)")
    add = [f"alter table {table} add column c{number} integer default {number}" for number in range(LAYOUTS)]
    insert = [
        f"insert into {table} (id, n) select i, i from generate_series({number * ROWS_PER_LAYOUT},"
        f" {(number + 1) * ROWS_PER_LAYOUT - 1}) as s(i)"
        for number in range(LAYOUTS)
    ]
    texts = [*add, *insert] if added_first else [text for pair in zip(add, insert, strict=True) for text in pair]
    for text in texts:
        subject.request("execute", sql=text)


def columns(context: Context) -> Iterable[Reading]:
    """Statements on a wide table, over the same statements on a narrow one."""
    note = f"{WIDE} columns over {NARROW}"
    with run_subject() as subject:
        subject.request("open", folder=str(context.folder("columns")), key="")
        for table, count in (("wide", WIDE), ("narrow", NARROW)):
            named = ", ".join(f"c{number} integer default {number}" for number in range(count))
            subject.request("execute", sql=f"create table {table} (id bigint primary key, {named})")
            subject.request("execute", sql=f"insert into {table} (id) select i from generate_series(0, 999) as s(i)")
        for name, text in (
            ("point", "select c1 from {table} where id = 5"),
            ("scan", "select sum(c1) from {table}"),
            ("update", "update {table} set c1 = c1 + 1 where id = 7"),
            ("change", "alter table {table} alter column c1 set default 1"),
        ):
            yield compared(subject, context, f"growth.columns.{name}", text, "wide", "narrow", note)
        subject.request("close")


def compared(subject: Client, context: Context, name: str, text: str, large: str, small: str, note: str) -> Reading:
    """Milliseconds of a statement on two tables, alternately, after a first run on each."""

    def milliseconds(table: str) -> float:
        sql = text.format(table=table)
        seconds: list[float] = [
            subject.request("execute", sql=sql)["seconds"] for _ in range(context.scale.repetitions)
        ]
        return median(seconds) * 1000

    for table in (large, small):
        milliseconds(table)
    ours, theirs = interleave(context.scale.rounds, lambda _: milliseconds(large), lambda _: milliseconds(small))
    return Reading(name, "ms", ours, theirs, note)


MEASURES = (
    Measure("growth.layouts", layouts, bounds_of("growth.layouts")),
    Measure("growth.columns", columns, bounds_of("growth.columns")),
    Measure("growth.size", size, bounds_of("growth.size")),
    Measure("growth.resume", resume, bounds_of("growth.resume")),
)
