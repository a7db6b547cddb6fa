"""Whether the time of a build grows with the table and its memory does not, and what a crash in the middle costs."""

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Context, Measure, Reading, Sample
from bench.measures.builds import seconds_of
from bench.peers.client import Client, run_subject

BUILD = "create index built on t (k)"
MEGABYTE = 1024**2
# So that a job without a node does not wait long for another.
SETTINGS = '[seachange]\nnode_expiry = "2s"\n'
LOOK_SECONDS = 0.1
WAIT_SECONDS_MAX = 120.0
STATUS = """
    select status, extract(epoch from updated - (
        select max(moment) from seachange.events e where e.job_id = j.id and event like 'taken up%'))
    from seachange.jobs j where id = (select max(id) from seachange.jobs)
"""


@dataclass(frozen=True, slots=True)
class Build:
    rows: int
    seconds: float
    driver_bytes: int
    kernel_bytes: int


def load(context: Context, rows: int) -> Path:
    """A database with so many rows, loaded by a process whose memory does not count."""
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
    """The best of some builds: of a single one, what the machine does besides is a large part."""
    folder = load(context, rows)
    with run_subject() as subject:
        subject.request("open", folder=str(folder), key="")
        subject.request("warm_spark")
        seconds = []
        for _ in range(context.scale.rounds_long if rows < max(context.scale.rows_growing) else 1):
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
    """The time that two processes work on a build when the first is killed in the middle, over one undisturbed."""
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
    """Begins a build and kills the process after that time."""
    start = time.monotonic()
    client.send("execute", sql=BUILD)
    time.sleep(seconds)
    client.kill()
    return time.monotonic() - start


def finish(client: Client) -> float:
    """The seconds from when the node has taken the build up until it is done, by the history."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        ((status, seconds),) = client.request("query", sql=STATUS)["rows"]
        if status == "succeeded":
            return float(seconds)
        assert status == "running", f"the build is {status}"
        time.sleep(LOOK_SECONDS)
    raise AssertionError("the build was not finished")


MEASURES = (
    Measure("growth.size", size, bounds_of("growth.size")),
    Measure("growth.resume", resume, bounds_of("growth.resume")),
)
