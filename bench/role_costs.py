"""The cost of privileges: statements by key and INSERT, in a block and in autocommit, in microseconds per statement.

`python -m bench.role_costs [--catalog postgresql://...]`; with another `src` on PYTHONPATH it measures that one.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from contextlib import closing
from time import perf_counter

import seachange
from seachange.engine.api import Connection

_ROWS = 1_000
_STATEMENTS = 200
_ROUNDS = 7
_BLOCK = "begin isolation level repeatable read"


def measure(catalog: str | None) -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory() as data,
        closing(seachange.connect(data, catalog=catalog, autocommit=True)) as root,
    ):
        root.execute("create table t (id bigint primary key, v int)")
        root.execute(f"insert into t select n, n from generate_series(1, {_ROWS}) s(n)")
        root.execute("create role readers; create role ann login in role readers")
        root.execute("grant select, insert on t to ann")
        found: dict[str, float] = {}
        for user in ("seachange", "ann"):
            with closing(seachange.connect(data, catalog=catalog, user=user, autocommit=True)) as connection:
                found |= {f"{name}, {user}": us for name, us in _measure_role(connection).items()}
        return found


def _measure_role(connection: Connection) -> dict[str, float]:
    next_key = iter(range(hash(connection) % 2**40 * 2**20, 2**62))

    def select(number: int) -> None:
        connection.execute("select v from t where id = $1", (number % _ROWS + 1,)).fetchall()

    def insert(_: int) -> None:
        connection.execute("insert into t values ($1, 0)", (next(next_key),))

    return {
        "SELECT by key in a REPEATABLE READ block": _time(connection, select, _BLOCK),
        "SELECT by key in a READ COMMITTED block": _time(connection, select, "begin"),
        "SELECT by key, autocommit": _time(connection, select, None),
        "INSERT in a REPEATABLE READ block": _time(connection, insert, _BLOCK),
        "INSERT, autocommit": _time(connection, insert, None),
    }


def _time(connection: Connection, run: Callable[[int], None], begin: str | None) -> float:
    rounds = []
    for _ in range(_ROUNDS):
        if begin is not None:
            connection.execute(begin)
        run(0)
        started = perf_counter()
        for number in range(_STATEMENTS):
            run(number)
        rounds.append((perf_counter() - started) / _STATEMENTS * 1e6)
        if begin is not None:
            connection.execute("rollback")
    return round(statistics.median(rounds), 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog")
    print(json.dumps(measure(parser.parse_args().catalog), indent=1))
