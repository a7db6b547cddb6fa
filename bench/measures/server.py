"""The server, over the protocol: short statements, large results, COPY, many idle connections; beside PostgreSQL."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import quantiles
from typing import Any

import psycopg

from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample, interleave
from bench.peers.served import Served, serve_postgresql, serve_seachange
from bench.scale import Scale

CONNECTIONS = 8
IDLE_CONNECTIONS = 500
KEYED_ROWS = 10_000
# Coprime to the number of rows, so that every key comes, far from the one before.
STRIDE = 7_919
ROWS_MAX = 1_000_000
CHUNK_BYTES = 1 << 20
TABLE = "create table k (id int primary key, n bigint, word text)"
FILL = f"insert into k select i, 0, 'word ' || i from generate_series(0, {KEYED_ROWS - 1}) as s(i)"
SELECT = "select id, n, word from k where id = %s"
UPDATE = "update k set n = n + 1 where id = %s"


@contextmanager
def both(context: Context, name: str) -> Iterator[tuple[Served, Served]]:
    with serve_seachange(context.folder(name)) as ours, serve_postgresql() as theirs:
        yield ours, theirs


def connect(served: Served) -> psycopg.Connection[Any]:
    """One that prepares every statement when it is sent first."""
    return psycopg.connect(served.url, autocommit=True, prepare_threshold=0)


def time_statements(connection: psycopg.Connection[Any], text: str, keys: Iterator[int], seconds: float) -> list[float]:
    """How long each one took, for so long."""
    taken: list[float] = []
    cursor = connection.cursor()
    has_parameter = "%s" in text
    end = time.perf_counter() + seconds
    before = time.perf_counter()
    while before < end:
        cursor.execute(text, (next(keys),) if has_parameter else None)
        if cursor.description:
            cursor.fetchall()
        now = time.perf_counter()
        taken.append(now - before)
        before = now
    return taken


def keys_from(first: int) -> Iterator[int]:
    key = first
    while True:
        key = (key + STRIDE) % KEYED_ROWS
        yield key


def rate_of_one(served: Served, text: str, seconds: float) -> float:
    with connect(served) as connection:
        time_statements(connection, text, keys_from(0), seconds / 5)
        return len(time_statements(connection, text, keys_from(0), seconds)) / seconds


def times_of_many(served: Served, text: str, seconds: float) -> list[float]:
    """The same from several connections at once."""
    taken: list[float] = []

    def work(number: int) -> None:
        with connect(served) as connection:
            time_statements(connection, text, keys_from(number), seconds / 5)
            taken.extend(time_statements(connection, text, keys_from(number * 1_000), seconds))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def constant(context: Context) -> Iterable[Reading]:
    seconds = context.scale.window_seconds
    with both(context, "constant") as (ours, theirs):
        samples = interleave(
            context.scale.rounds,
            lambda _: rate_of_one(ours, "select 1", seconds),
            lambda _: rate_of_one(theirs, "select 1", seconds),
        )
    yield Reading("server.constant", "/s", *samples)


def keyed(context: Context) -> Iterable[Reading]:
    seconds = context.scale.window_seconds
    with both(context, "keyed") as servers:
        for served in servers:
            with connect(served) as connection:
                connection.execute(TABLE)
                connection.execute(FILL)
        for name, text in (("select", SELECT), ("update", UPDATE)):
            yield from rates_and_tail(f"server.keyed.{name}", servers, text, context.scale, seconds)


def rates_and_tail(
    name: str, servers: tuple[Served, Served], text: str, scale: Scale, seconds: float
) -> Iterable[Reading]:
    tails: list[float] = []

    def measure(served: Served) -> float:
        taken = times_of_many(served, text, seconds)
        if served is servers[0]:
            cuts = quantiles(taken, n=100)
            tails.append(cuts[98] / cuts[49])
        return len(taken) / seconds

    samples = interleave(scale.rounds, lambda _: measure(servers[0]), lambda _: measure(servers[1]))
    yield Reading(f"{name}.rate", "/s", *samples, note=f"{CONNECTIONS} connections")
    yield Reading(f"{name}.p99_to_p50", "", Sample(tuple(tails)))


def result(context: Context) -> Iterable[Reading]:
    rows = min(context.scale.rows, ROWS_MAX)
    query = f"select i, i * 2.5::float8, 'word ' || i from generate_series(1, {rows}) as s(i)"

    def seconds(served: Served) -> float:
        with connect(served) as connection:
            start = time.perf_counter()
            assert len(connection.execute(query).fetchall()) == rows
            return time.perf_counter() - start

    with both(context, "result") as (ours, theirs):
        samples = interleave(context.scale.rounds_long, lambda _: seconds(ours), lambda _: seconds(theirs))
    yield Reading("server.result", "s", *samples, note=f"{rows:,} rows")


def copy(context: Context) -> Iterable[Reading]:
    rows = min(context.scale.rows, ROWS_MAX)
    data = "".join(f"{number}\t{number * 2.5}\tword {number}\n" for number in range(rows)).encode()

    def rate(served: Served, number: int) -> float:
        with connect(served) as connection:
            connection.execute(f"create table c{number} (id int primary key, x float8, word text)")
            start = time.perf_counter()
            with connection.cursor().copy(f"copy c{number} from stdin") as stream:
                for first in range(0, len(data), CHUNK_BYTES):
                    stream.write(data[first : first + CHUNK_BYTES])
            return rows / (time.perf_counter() - start)

    with both(context, "copy") as (ours, theirs):
        samples = interleave(context.scale.rounds_long, lambda n: rate(ours, n), lambda n: rate(theirs, n))
    yield Reading("server.copy", "rows/s", *samples, note=f"{rows:,} rows")


def idle(context: Context) -> Iterable[Reading]:
    """What a statement takes with many idle connections, over without; and what one of them costs."""
    seconds, rounds = context.scale.window_seconds, context.scale.rounds
    with serve_seachange(context.folder("idle")) as served:

        def time_one(_: int) -> float:
            return 1_000 / rate_of_one(served, "select 1", seconds)

        alone = Sample(tuple(map(time_one, range(rounds))))
        before = served.memory_bytes
        with ExitStack() as stack:
            for _ in range(IDLE_CONNECTIONS):
                connection = stack.enter_context(connect(served))
                connection.execute("select 1")
            kilobytes = (served.memory_bytes - before) / IDLE_CONNECTIONS / 1024
            crowded = Sample(tuple(map(time_one, range(rounds))))
    yield Reading("server.idle.statement", "ms", crowded, alone, note=f"{IDLE_CONNECTIONS} idle connections")
    yield Reading("server.idle.memory", "kB", Sample((kilobytes,)), note="for each connection")


_MEASURES: tuple[tuple[str, Callable[[Context], Iterable[Reading]]], ...] = (
    ("server.constant", constant),
    ("server.keyed", keyed),
    ("server.result", result),
    ("server.copy", copy),
    ("server.idle", idle),
)
MEASURES = tuple(Measure(name, function, bounds_of(name)) for name, function in _MEASURES)
