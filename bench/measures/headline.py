"""The same changes of the same rows under the same traffic, on Seachange and on its peers.

Traffic is due at a fixed rate, the same for everybody; what a system gets done of it, and how late, is seen before the
first change and during each. A system that cannot be had, lacks a change or fails at it is a line that says so, and
the others go on.
"""

import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Absence, Context, Measure, Reading, Sample, Unavailable
from bench.headline.changes import (
    AS_CAREFUL,
    BATCHED_BEFORE,
    CAREFUL,
    CHANGES,
    DELTALAKE,
    DUCKLAKE,
    PARENT_ROWS,
    PLAIN,
    PROBE,
    PROBE_VALUES,
    REMARKS,
    Change,
    Way,
)
from bench.headline.contestant import ATTEMPTS
from bench.peers.client import Client, ProcessFailed, run_module
from bench.peers.environment import interpreter_of
from bench.peers.postgresql import PostgresTemplate, serve_template

WINDOW_SECONDS_MIN = 2.0
CHANGE_SECONDS_MAX = 300.0


@dataclass(frozen=True, slots=True)
class Pair:
    """The process with the traffic and the one that makes the changes; they may be the same."""

    traffic: Client
    changer: Client


@dataclass(frozen=True, slots=True)
class System:
    name: str
    ways: dict[str, Way] | dict[str, str]
    # Opens the system with the rows in it, for as long as the block lasts.
    run: Callable[[Context, ExitStack], Pair]


@dataclass(frozen=True, slots=True)
class Window:
    done: int
    rate: float
    p99_ms: float
    failed: int
    errors: dict[str, int]


def window_of(answer: dict[str, Any]) -> Window:
    """The rate counts successful transactions; if there was none, the whole time was spent waiting."""
    seconds = sorted(answer["seconds"])
    elapsed = answer["elapsed"]
    p99 = seconds[max(0, -(-len(seconds) * 99 // 100) - 1)] if seconds else elapsed
    errors = answer["errors"]
    return Window(len(seconds), len(seconds) / elapsed, p99 * 1000, sum(errors.values()), errors)


def start(name: str, module: str, interpreter: Path, stack: ExitStack) -> Client:
    return stack.enter_context(run_module(name, f"bench.headline.{module}", interpreter))


def run_seachange(context: Context, stack: ExitStack) -> Pair:
    folder = str(context.folder("seachange"))
    changer, traffic = (start("seachange", "on_seachange", Path(sys.executable), stack) for _ in range(2))
    changer.request("open", folder=folder)
    changer.request("load", source=str(write_source(context.scratch, context.scale.rows)))
    traffic.request("open", folder=folder)
    return Pair(traffic, changer)


def postgresql(way: str, ways: dict[str, Way], template: PostgresTemplate) -> System:
    def run(context: Context, stack: ExitStack) -> Pair:
        url = stack.enter_context(template.copied())
        changer, traffic = (start("postgresql", "on_postgresql", Path(sys.executable), stack) for _ in range(2))
        for client in (changer, traffic):
            client.request("open", url=url, way=way, rows=context.scale.rows)
        return Pair(traffic, changer)

    return System(f"postgresql_{way}", ways, run)


def run_ducklake(context: Context, stack: ExitStack) -> Pair:
    source = write_source(context.scratch, context.scale.rows)
    client = start("ducklake", "on_ducklake", interpreter_of("ducklake"), stack)
    client.request("open", folder=str(context.folder("ducklake")), source=str(source))
    return Pair(client, client)


def run_deltalake(context: Context, stack: ExitStack) -> Pair:
    folder, source = str(context.folder("deltalake")), write_source(context.scratch, context.scale.rows)
    changer, traffic = (start("deltalake", "on_deltalake", interpreter_of("deltalake"), stack) for _ in range(2))
    changer.request("create", folder=folder, source=str(source))
    for client in (changer, traffic):
        client.request("open", folder=folder)
    return Pair(traffic, changer)


# What PostgreSQL has besides the rows.
PREPARED = (
    "create table p (id integer primary key)",
    f"insert into p select i from generate_series(0, {PARENT_ROWS - 1}) as s(i)",
    f"create table {PROBE} (like t including all)",
    f"insert into {PROBE} values {PROBE_VALUES}",
    "vacuum analyze",
)


@contextmanager
def systems(context: Context) -> Iterator[list[System | Absence]]:
    """All systems; the variants of PostgreSQL share a server, and each has a copy of the table that was loaded once."""
    batched: dict[str, Way] = {change.name: AS_CAREFUL for change in CHANGES}
    batched["type"] = BATCHED_BEFORE
    ways = {"plain": PLAIN, "careful": CAREFUL, "batched": batched}
    with ExitStack() as stack:
        found: list[System | Absence] = [System("seachange", PLAIN, run_seachange)]
        try:
            template = stack.enter_context(serve_template(context.scratch, context.scale.rows, PREPARED))
            found += [postgresql(way, texts, template) for way, texts in ways.items()]
        except Exception as error:  # noqa: BLE001 - without PostgreSQL the others are measured all the same
            traceback.print_exc()
            found += [Absence(f"postgresql_{way}", in_one_line(error)) for way in ways]
        found.append(System("ducklake", DUCKLAKE, run_ducklake))
        found.append(System("deltalake", DELTALAKE, run_deltalake))
        yield found


def headline(context: Context) -> Iterable[Reading | Absence]:
    with systems(context) as found:
        for system in found:
            yield from lines_of(system, context)


def lines_of(system: System | Absence, context: Context) -> list[Reading | Absence]:
    """A line for each change, even if the system fails."""
    if isinstance(system, Absence):
        return [*absences(system.name, system.reason)]
    try:
        with ExitStack() as stack:
            return compare(system, system.run(context, stack), context)
    except Exception as error:  # noqa: BLE001 - one system that fails shall not keep the others from being measured
        traceback.print_exc()
        return [*absences(system.name, in_one_line(error))]


def in_one_line(error: Exception) -> str:
    said = " ".join(str(error).split())
    return said if isinstance(error, Unavailable) else f"{type(error).__name__}: {said}"


def absences(system: str, reason: str) -> list[Absence]:
    return [absence(system, change, reason) for change in CHANGES]


def absence(system: str, change: Change, reason: str) -> Absence:
    return Absence(f"headline.{change.name}.{system}", reason, {"system": system, "change": change.name})


def compare(system: System, pair: Pair, context: Context) -> list[Reading | Absence]:
    """All changes of one system; a change that fails must leave the table as it was, or the system is not used
    further."""
    rate = context.scale.rate
    pair.traffic.request("attend", rows=context.scale.rows)
    # The first transactions open files and fill caches.
    window(pair.traffic, rate, WINDOW_SECONDS_MIN)
    before = window(pair.traffic, rate, 2 * context.scale.window_seconds)
    lines: list[Reading | Absence] = []
    for change in CHANGES:
        way = system.ways[change.name]
        if isinstance(way, str) and way:
            lines.append(absence(system.name, change, way))
            continue
        try:
            lines.append(measure(system, pair, change, before, rate))
        except ProcessFailed as error:
            lines.append(
                absence(system.name, change, f"failed {ATTEMPTS} times beside the traffic: {error}".splitlines()[0])
            )
    return lines


def window(traffic: Client, rate: float, seconds: float) -> Window:
    traffic.request("start", rate=rate)
    time.sleep(seconds)
    return window_of(traffic.request("stop", CHANGE_SECONDS_MAX))


def measure(system: System, pair: Pair, change: Change, before: Window, rate: float) -> Reading:
    begun = time.monotonic()
    pair.traffic.request("start", rate=rate)
    try:
        made = pair.changer.request("change", CHANGE_SECONDS_MAX, change=change.name)
        time.sleep(max(0.0, begun + WINDOW_SECONDS_MIN - time.monotonic()))
    finally:
        answer = pair.traffic.request("stop", CHANGE_SECONDS_MAX)
    during = window_of(answer)
    validated = pair.changer.request("probe", change=change.name)["validated"] if change.is_constraint else None
    facts = {
        "system": system.name,
        "change": change.name,
        "rate_asked": rate,
        "rate_before": before.rate,
        "rate": during.rate,
        "p99_ms_before": before.p99_ms,
        "p99_ms": during.p99_ms,
        "transactions": during.done + during.failed,
        "failed": during.failed,
        "errors": during.errors,
        "validated": validated,
        "attempts": made["attempts"],
        "remark": REMARKS.get((system.name, change.name), ""),
    }
    kept = during.rate / before.rate if before.rate else 0.0
    note = f"{kept:.0%} of {before.rate:.1f}/s kept, p99 {during.p99_ms:,.0f} ms, {during.failed} failed"
    return Reading(
        f"headline.{change.name}.{system.name}", "s", Sample((float(made["seconds"]),)), note=note, facts=facts
    )


MEASURES = (Measure("headline", headline, bounds_of("headline")),)
