"""Many writers on one table: processes on either catalog, and sessions of one node."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, quantiles

from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample, Unavailable
from bench.peers.client import Client, run_subject
from tests.support.postgres import LocalPostgres, PostgresFailed

# Time for every process to receive its order before the window opens.
START_DELAY_SECONDS = 0.5
IDS_PER_PROCESS = 10**9


@dataclass(frozen=True, slots=True)
class Window:
    """What the writers did while the window was open: the seconds of each commit of each writer."""

    seconds: tuple[tuple[float, ...], ...]
    catalog_commits: int = 0

    @property
    def commits(self) -> int:
        return sum(map(len, self.seconds))

    @property
    def rate(self) -> float:
        return self.commits / max(map(sum, self.seconds))

    @property
    def slowest_to_mean(self) -> float:
        return min(map(len, self.seconds)) / mean(map(len, self.seconds))

    @property
    def p99_to_p50(self) -> float:
        percentiles = quantiles((value for each in self.seconds for value in each), n=100)
        return percentiles[98] / percentiles[49]


@dataclass(frozen=True, slots=True)
class Databases:
    """Where fresh databases come from."""

    context: Context
    server: LocalPostgres | None

    def create(self, name: str) -> tuple[Path, str | None]:
        catalog = None if self.server is None else self.server.create_database()
        return self.context.folder(name), catalog


@contextmanager
def postgres_server() -> Iterator[LocalPostgres]:
    try:
        server = LocalPostgres()
        server.start()
    except PostgresFailed as error:
        raise Unavailable(str(error)) from error
    with server:
        yield server


def window_of_processes(databases: Databases, name: str, count: int) -> Window:
    """One fresh table, written by that many processes at the same time."""
    folder, catalog = databases.create(name)
    with ExitStack() as stack:
        clients = [stack.enter_context(run_subject()) for _ in range(count)]
        for number, client in enumerate(clients):
            key = "id" if number == 0 else ""
            client.request("open", folder=str(folder), catalog=catalog, key=key)
        seconds = commit_together(clients, databases.context.scale.window_seconds)
        window = Window(seconds)
        assert clients[0].request("count")["rows"] == window.commits, "commits were lost"
        for client in clients:
            client.request("close")
    return window


def commit_together(clients: Sequence[Client], window_seconds: float) -> tuple[tuple[float, ...], ...]:
    start = time.monotonic() + START_DELAY_SECONDS
    for number, client in enumerate(clients):
        first_id = number * IDS_PER_PROCESS
        client.send("commit_window", start=start, window_seconds=window_seconds, first_id=first_id)
    return tuple(tuple(client.receive()["seconds"]) for client in clients)


def processes_on(catalog: str, context: Context) -> Iterable[Reading]:
    """One process and many in turns, on a catalog of the kind named."""
    many, one = [], []
    with postgres_server() if catalog == "postgresql" else nullcontext() as server:
        databases = Databases(context, server)
        for number in range(context.scale.rounds):
            folder = f"{catalog}/{number}"
            many.append(window_of_processes(databases, f"{folder}/many", context.scale.processes))
            one.append(window_of_processes(databases, f"{folder}/one", 1))
    name = f"processes.{catalog}"
    note = f"{context.scale.processes} processes over one"
    yield Reading(f"{name}.throughput", "/s", rates(many), rates(one), note)
    slowest = Sample(tuple(window.slowest_to_mean for window in many))
    yield Reading(f"{name}.slowest_to_mean", "", slowest)
    yield Reading(f"{name}.p99_to_p50", "", Sample(tuple(window.p99_to_p50 for window in many)))


def window_of_sessions(databases: Databases, name: str, count: int) -> Window:
    """One fresh table, written by that many sessions of one node at the same time."""
    folder, catalog = databases.create(name)
    with run_subject() as client:
        client.request("open", folder=str(folder), catalog=catalog)
        seconds = databases.context.scale.window_seconds
        answer = client.request("commit_sessions", sessions=count, window_seconds=seconds)
        window = Window(tuple(map(tuple, answer["seconds"])), answer["catalog_commits"])
        assert client.request("count")["rows"] == window.commits, "commits were lost"
        client.request("close")
    return window


def sessions_of_one_node(context: Context) -> Iterable[Reading]:
    many, one = [], []
    with postgres_server() as server:
        databases = Databases(context, server)
        for number in range(context.scale.rounds):
            folder = f"sessions/{number}"
            many.append(window_of_sessions(databases, f"{folder}/many", context.scale.processes))
            one.append(window_of_sessions(databases, f"{folder}/one", 1))
    note = f"{context.scale.processes} sessions over one"
    yield Reading("processes.sessions.throughput", "/s", rates(many), rates(one), note)
    shares = Sample(tuple(window.catalog_commits / window.commits for window in many))
    yield Reading("processes.sessions.catalog_transactions_per_commit", "", shares)


def rates(windows: Sequence[Window]) -> Sample:
    return Sample(tuple(window.rate for window in windows))


MEASURES = (
    *(
        Measure(name, partial(processes_on, catalog), bounds_of(name))
        for catalog in ("postgresql", "sqlite")
        for name in (f"processes.{catalog}",)
    ),
    Measure("processes.sessions", sessions_of_one_node, bounds_of("processes.sessions")),
)
