"""The cost of privileges: statements by key and INSERT, in a block and in autocommit, as the bootstrap superuser, which
has every right, and as a role whose rights are evaluated.

`python -m bench.role_costs [--catalog postgresql://...]`; with another `src` on PYTHONPATH it measures that one.

For each statement: microseconds of wall and CPU time; and, in percent of the CPU time by a profile, which overstates
small functions, the shares of reading the catalog's head and of evaluating roles and privileges.
"""

import argparse
import cProfile
import json
import pstats
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from time import perf_counter, process_time, thread_time
from typing import Any

import seachange
from seachange.engine.api import Connection

_ROWS = 1_000
_STATEMENTS = 200
_ROUNDS = 7
_BLOCK = "begin isolation level repeatable read"
_HEAD = ("engine/replica/epoch.py", "catch_up")
_RIGHTS = ("engine/buffer/rights.py", "")


def measure(catalog: str | None) -> dict[str, dict[str, float]]:
    with (
        tempfile.TemporaryDirectory() as data,
        closing(seachange.connect(data, catalog=catalog, autocommit=True)) as root,
    ):
        root.execute("create table t (id bigint primary key, v int)")
        root.execute(f"insert into t select n, n from generate_series(1, {_ROWS}) s(n)")
        root.execute("create role readers; create role ann login in role readers")
        root.execute("grant select, insert on t to ann")
        found: dict[str, dict[str, float]] = {}
        for user in ("seachange", "ann"):
            with closing(seachange.connect(data, catalog=catalog, user=user, autocommit=True)) as connection:
                found |= {f"{name}, {user}": costs for name, costs in _measure_role(connection)}
        return found


def _measure_role(connection: Connection) -> Iterator[tuple[str, dict[str, float]]]:
    next_key = iter(range(hash(connection) % 2**40 * 2**20, 2**62))

    def select(number: int) -> None:
        connection.execute("select v from t where id = $1", (number % _ROWS + 1,)).fetchall()

    def insert(_: int) -> None:
        connection.execute("insert into t values ($1, 0)", (next(next_key),))

    for name, run, begin in (
        ("SELECT by key in a REPEATABLE READ block", select, _BLOCK),
        ("SELECT by key in a READ COMMITTED block", select, "begin"),
        ("SELECT by key, autocommit", select, None),
        ("INSERT in a REPEATABLE READ block", insert, _BLOCK),
        ("INSERT, autocommit", insert, None),
    ):
        yield name, _time(connection, run, begin) | _profile(connection, run, begin)


def _time(connection: Connection, run: Callable[[int], None], begin: str | None) -> dict[str, float]:
    wall, cpu = [], []
    for _ in range(_ROUNDS):
        if begin is not None:
            connection.execute(begin)
        run(0)
        started, cpu_started = perf_counter(), process_time()
        for number in range(_STATEMENTS):
            run(number)
        wall.append((perf_counter() - started) / _STATEMENTS * 1e6)
        cpu.append((process_time() - cpu_started) / _STATEMENTS * 1e6)
        if begin is not None:
            connection.execute("rollback")
    return {"wall_us": round(statistics.median(wall), 1), "cpu_us": round(statistics.median(cpu), 1)}


def _profile(connection: Connection, run: Callable[[int], None], begin: str | None) -> dict[str, float]:
    if begin is not None:
        connection.execute(begin)
    # Of this thread alone, so that other processes on the machine do not count.
    profile = cProfile.Profile(thread_time)
    started = thread_time()
    with profile:
        for number in range(_STATEMENTS):
            run(number)
    total = thread_time() - started
    if begin is not None:
        connection.execute("rollback")
    # The stubs know neither the attribute nor its shape.
    calls: dict[tuple[str, int, str], Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    return {
        "head_percent": round(_seconds_in(calls, *_HEAD) / total * 100, 1),
        "rights_percent": round(_seconds_in(calls, *_RIGHTS) / total * 100, 1),
    }


def _seconds_in(calls: dict[tuple[str, int, str], Any], module: str, name: str) -> float:
    """Of the functions of a module, called from others."""
    seconds = 0.0
    for (path, _, function), (*_, callers) in calls.items():
        if path.endswith(module) and function.startswith(name):
            seconds += sum(found[3] for caller, found in callers.items() if not caller[0].endswith(module))
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog")
    print(json.dumps(measure(parser.parse_args().catalog), indent=1))
