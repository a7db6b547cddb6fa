"""pgbench over the protocol, beside PostgreSQL: transactions per second in turns, and the server's CPU time for each.

The rate depends on what else the machine does; the CPU time hardly does.
"""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample, Unavailable
from bench.measures.server import both
from bench.peers.served import Served
from bench.scale import Scale
from tests.support.postgres import OLDEST_VERSION, Account, PostgresFailed, find_binaries

_ROWS_OF_SCALE = 100_000
_SECONDS_MAX = 600
# Row groups are decoded, and plans compiled, when they are used first.
_WARM_UP_S = 2
_TICKS = os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM = 13, 14


@dataclass(frozen=True, slots=True)
class Load:
    name: str
    options: tuple[str, ...]
    clients: int
    protocol: str = "prepared"

    @property
    def note(self) -> str:
        return f"pgbench {' '.join(self.options)} -M {self.protocol} -c {self.clients}".replace("  ", " ")


LOADS = (
    Load("read.one", ("-S",), 1),
    Load("read.eight", ("-S",), 8),
    Load("write.one", ("-N",), 1),
    Load("write.eight", ("-N",), 8),
    Load("tpcb.eight", (), 8),
    Load("simple.one", ("-S",), 1, "simple"),
)


@dataclass(frozen=True, slots=True)
class Run:
    rate: float
    cpu_ms: float


@cache
def find_pgbench() -> str:
    """That of the package which the server comes from."""
    try:
        return str(find_binaries(OLDEST_VERSION, Path(tempfile.gettempdir()), Account()) / "pgbench")
    except PostgresFailed as error:
        raise Unavailable(str(error)) from error


def pgbench(served: Served, *options: str) -> str:
    command = [find_pgbench(), *options, served.url]
    run = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False)
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)}: {run.stderr}")
    return run.stdout


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # What is behind the name begins with the third field.
    return (int(fields[_USER - 2]) + int(fields[_SYSTEM - 2])) / _TICKS


def run_load(served: Served, load: Load, seconds: int) -> Run:
    before = cpu_s(served.pid) if served.pid is not None else 0.0
    shown = pgbench(served, *_flags(load, seconds))
    after = cpu_s(served.pid) if served.pid is not None else 0.0
    done = re.search(r"transactions actually processed: (\d+)", shown)
    rate = re.search(r"tps = ([\d.]+)", shown)
    assert done is not None, shown
    assert rate is not None, shown
    return Run(float(rate[1]), (after - before) / int(done[1]) * 1_000)


def _flags(load: Load, seconds: int) -> list[str]:
    threads = str(min(load.clients, os.cpu_count() or 1))
    return [
        *load.options,
        *("-n", "-M", load.protocol, "-c", str(load.clients), "-j", threads, "-T", str(seconds)),
    ]


def fill(served: Served, scale: int) -> float:
    """The tables and their rows; the seconds for making the rows on the client, and copying them."""
    pgbench(served, "-i", "-q", "-s", str(scale), "-I", "dt")
    begun = time.perf_counter()
    pgbench(served, "-i", "-q", "-s", str(scale), "-I", "g")
    took_s = time.perf_counter() - begun
    pgbench(served, "-i", "-q", "-s", str(scale), "-I", "p")
    return took_s


def _scale(scale: Scale) -> int:
    return max(min(scale.rows, 1_000_000) // _ROWS_OF_SCALE, 1)


@contextmanager
def filled(context: Context, name: str) -> Iterator[tuple[Served, Served]]:
    with both(context, name) as servers:
        for served in servers:
            fill(served, _scale(context.scale))
            pgbench(served, *_flags(LOADS[0], _WARM_UP_S))
        yield servers


def load_tables(context: Context) -> Iterable[Reading]:
    with both(context, "load") as servers:
        rounds = [[fill(served, _scale(context.scale)) for served in servers] for _ in range(context.scale.rounds_long)]
    ours, theirs = (Sample(tuple(times)) for times in zip(*rounds, strict=True))
    note = f"COPY of {_scale(context.scale) * _ROWS_OF_SCALE:,} rows, a message each"
    yield Reading("pgbench.load", "s", ours, theirs, note=note)


def run_loads(context: Context) -> Iterable[Reading]:
    seconds = max(round(context.scale.window_seconds), 1)
    with filled(context, "loads") as servers:
        for load in LOADS:
            rounds = [[run_load(served, load, seconds) for served in servers] for _ in range(context.scale.rounds_long)]
            ours, theirs = zip(*rounds, strict=True)
            our_rates, their_rates = (Sample(tuple(run.rate for run in side)) for side in (ours, theirs))
            yield Reading(f"pgbench.{load.name}", "/s", our_rates, their_rates, note=load.note)
            cpu = Sample(tuple(run.cpu_ms for run in ours))
            yield Reading(f"pgbench.{load.name}.cpu", "ms", cpu, note="CPU time of the server for a transaction")


MEASURES = (
    Measure("pgbench.load", load_tables, bounds_of("pgbench.load")),
    Measure("pgbench.loads", run_loads, tuple(bound for load in LOADS for bound in bounds_of(f"pgbench.{load.name}"))),
)
