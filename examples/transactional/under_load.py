"""A migration in one transaction on a table that others write to all the time.

    python examples/transactional/under_load.py [--rows N] [--data DIR] [--catalog URL]

Two sessions insert rows and read, two update random rows, while one transaction changes every row and the type of a
column, and adds a unique index. It prints how many transactions there were beside it, how many of them failed, and the
longest wait. In the end every index is compared with its rows.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import seachange
from seachange.cli.main import main as seachange_command

MIGRATION = [
    "begin",
    "update t set a = a * 2",
    "alter table t alter a type text using a::text",
    "create unique index on t (b)",
    "insert into t values (-1, 'own', -1, 0)",
    "select count(*) from t where a = 'own'",
    "commit",
]


@dataclass
class Load:
    """Sessions in threads of their own, which write and read until they are stopped."""

    connect: Callable[[], seachange.Connection]
    rows: int
    stopped: threading.Event = field(default_factory=threading.Event)
    done: int = 0
    longest_s: float = 0.0
    failures: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def insert(self, number: int) -> None:
        def step(connection: seachange.Connection, turn: int) -> None:
            key = self.rows * (number + 2) + turn
            connection.execute(f"insert into t values ({key}, {key}, {key}, 0)")
            # All rows of one statement are of before the migration, or of after it.
            keys = random.sample(range(1, self.rows + 1), 5)
            seen = connection.execute(f"select id, a from t where id in ({', '.join(map(str, keys))})").fetchall()
            if dict(seen) not in ({k: k for k in keys}, {k: str(2 * k) for k in keys}):
                raise AssertionError(f"rows of two versions: {seen}")

        self._run(step)

    def update(self, number: int) -> None:
        def step(connection: seachange.Connection, turn: int) -> None:
            connection.execute(f"update t set n = n + 1 where id = {random.randint(1, self.rows)}")

        self._run(step)

    def _run(self, step: Callable[[seachange.Connection, int], None]) -> None:
        connection, turn = self.connect(), 0
        while not self.stopped.is_set():
            began = time.monotonic()
            try:
                step(connection, turn)
            except (seachange.Error, AssertionError) as problem:
                with self._lock:
                    self.failures.append(str(problem))
            turn += 1
            with self._lock:
                self.done += 1
                self.longest_s = max(self.longest_s, time.monotonic() - began)
        connection.close()


def migrate(connection: seachange.Connection) -> None:
    for sql in MIGRATION:
        began = time.monotonic()
        connection.execute(sql)
        print(f"{time.monotonic() - began:8.3f} s  {sql}")


def run(rows: int, data: Path, catalog: str | None) -> int:
    def connect() -> seachange.Connection:
        return seachange.connect(data, catalog, autocommit=True)

    connection = connect()
    connection.execute("create table t (id bigint primary key, a bigint, b bigint, n bigint)")
    connection.execute(f"insert into t select i, i, i, 0 from generate_series(1, {rows}) g (i)")
    load = Load(connect, rows)
    work = [load.insert, load.insert, load.update, load.update]
    threads = [threading.Thread(target=each, args=(number,)) for number, each in enumerate(work)]
    for thread in threads:
        thread.start()
    try:
        while load.done < 20:
            time.sleep(0.01)
        before = load.done
        migrate(connection)
        beside = load.done - before
        while load.done < before + beside + 20:
            time.sleep(0.01)
    finally:
        load.stopped.set()
        for thread in threads:
            thread.join()
    print(f"{beside} transactions beside it, {len(load.failures)} failed; the longest took {load.longest_s:.3f} s")
    for failure in load.failures[:5]:
        print(failure)
    connection.close()
    catalog_option = ["--catalog", catalog] if catalog else []
    checked = seachange_command(["check", "--data", str(data), *catalog_option])
    return 1 if load.failures or checked else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--catalog")
    given = parser.parse_args(arguments)
    if given.data is not None:
        return run(given.rows, given.data, given.catalog)
    with tempfile.TemporaryDirectory() as folder:
        return run(given.rows, Path(folder) / "data", given.catalog)


if __name__ == "__main__":
    sys.exit(main())
