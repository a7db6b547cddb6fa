"""The cost of a schema change for concurrent transactions: on a large table while an index on it is built."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import quantiles

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Context, Measure, Reading, Sample
from bench.measures.changes import IDS_PER_NODE, LOAD, capacity
from bench.peers.client import Client, run_load, run_subject

BUILD = "create index built on t (k)"
REMOVE = "drop index built"
ONE_CORE = "set seachange.pipeline_cores = 1"


@dataclass(frozen=True, slots=True)
class Window:
    rate: float
    p99_ms: float


def window_of(answer: dict[str, object]) -> Window:
    assert not answer["errors"], f"transactions failed: {answer['errors']}"
    seconds, elapsed = answer["seconds"], answer["elapsed"]
    assert isinstance(seconds, list)
    assert isinstance(elapsed, float)
    return Window(len(seconds) / elapsed, quantiles(seconds, n=100)[98] * 1000)


def undisturbed(foreground: Client, rate: float, seconds: float) -> Window:
    foreground.request("start", rate=rate)
    time.sleep(seconds)
    return window_of(foreground.request("stop"))


def while_building(foreground: Client, builder: Client, rate: float) -> Window:
    foreground.request("start", rate=rate)
    builder.request("execute", sql=BUILD)
    window = window_of(foreground.request("stop"))
    builder.request("execute", sql=REMOVE)
    return window


def index_build(context: Context) -> Iterable[Reading]:
    scale = context.scale
    before: dict[str, list[Window]] = {"open": [], "closed": []}
    during: dict[str, list[Window]] = {"open": [], "closed": []}
    with run_subject() as builder, run_load() as foreground:
        folder = str(context.folder("foreground"))
        builder.request("open", folder=folder)
        builder.request("load", source=str(write_source(context.scratch, scale.rows)))
        builder.request("compact")
        builder.request("execute", sql=ONE_CORE)
        foreground.request("open", folder=folder, rows=scale.rows, first_id=IDS_PER_NODE)
        capacity(foreground, scale.window_seconds)
        for _ in range(scale.rounds):
            closed = undisturbed(foreground, 0, scale.window_seconds)
            before["closed"].append(closed)
            during["closed"].append(while_building(foreground, builder, 0))
            before["open"].append(undisturbed(foreground, LOAD * closed.rate, 2 * scale.window_seconds))
            during["open"].append(while_building(foreground, builder, LOAD * closed.rate))
        foreground.request("close")
        builder.request("close")
    note = f"while an index on {scale.rows:,} rows is built, over before; "
    for loop, said in (("open", "half its capacity asked"), ("closed", "all of its capacity asked")):
        yield Reading(f"foreground.{loop}.throughput", "/s", rates(during[loop]), rates(before[loop]), note + said)
        yield Reading(f"foreground.{loop}.p99", "ms", percentiles(during[loop]), percentiles(before[loop]), note + said)


def rates(windows: Sequence[Window]) -> Sample:
    return Sample(tuple(window.rate for window in windows))


def percentiles(windows: Sequence[Window]) -> Sample:
    return Sample(tuple(window.p99_ms for window in windows))


MEASURES = (Measure("foreground", index_build, bounds_of("foreground")),)
