"""Schema changes that are reverted while two processes write: nothing that was written is lost, and no writer fails.

    python examples/undo/under_load.py [--rows N] [--batches N] [--data DIR] [--catalog URL]

A column is dropped, a type is changed, a table with foreign keys is dropped, and a table is truncated. After each of
them the writers go on, and then REVERT CHANGE takes it back while they write. In the end every row is compared with
what it was and with what the writers have written, and every index with its rows.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import seachange
from seachange.cli.main import main as seachange_command

SETUP = (
    "create table thing (id bigint primary key, note text not null default 'new', amount int, counted int default 0)",
    "insert into thing select i, 'note ' || i, i * 7, 0 from generate_series(1, {rows}) g(i)",
    "create index thing_note on thing (note)",
    "create table part (id bigint primary key, thing bigint not null references thing)",
    "insert into part select i, i from generate_series(1, {rows} / 10) g(i)",
    "create table piece (id bigint primary key, part bigint references part)",
    "insert into piece select i, i from generate_series(1, {rows} / 10) g(i)",
    "create table log (id bigint primary key, said text)",
    "insert into log select -i, 'old ' || i from generate_series(1, {rows}) g(i)",
)
CHANGES = (
    "alter table thing drop column note",
    "alter table thing alter column amount type text using ('#' || amount)",
    "drop table part cascade",
    "truncate log",
)


def connect(data: str, catalog: str | None) -> seachange.Connection:
    return seachange.connect(data=data, catalog=catalog, autocommit=True)


def write(number: int, rows: int, data: str, catalog: str | None) -> None:
    """Until its input ends; then it prints how many rows it has inserted, and what it has counted where."""
    counted: dict[int, int] = {}
    chance, inserted, slowest = random.Random(number), 0, 0.0
    with connect(data, catalog) as connection:
        print("ready", flush=True)
        for step in _until_stopped(itertools.count()):
            begun, id_, row = time.monotonic(), rows + 2 * step + number, chance.randint(1, rows)
            connection.execute("insert into thing (id) values (%s)", (id_,))
            connection.execute("update thing set counted = counted + 1 where id = %s", (row,))
            connection.execute("insert into log values (%s, %s)", (id_, f"new {id_}"))
            counted[row] = counted.get(row, 0) + 1
            inserted, slowest = inserted + 1, max(slowest, time.monotonic() - begun)
    print(json.dumps({"inserted": inserted, "counted": counted, "slowest": slowest}), flush=True)


def _until_stopped(numbers: Iterator[int]) -> Iterator[int]:
    """The main process asks for each batch of rows."""
    for _ in sys.stdin:
        yield from itertools.islice(numbers, 10)
        print("written", flush=True)


class Writer:
    def __init__(self, number: int, rows: int, data: str, catalog: str | None) -> None:
        command = [sys.executable, __file__, "--data", data, "--rows", str(rows), "--writer", str(number)]
        command += ["--catalog", catalog] if catalog is not None else []
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer("ready")

    def ask(self) -> None:
        """For more rows."""
        assert self._process.stdin is not None
        self._process.stdin.write("more\n")
        self._process.stdin.flush()

    def wait(self) -> None:
        self._answer("written")

    def _answer(self, expected: str) -> None:
        assert self._process.stdout is not None
        found = self._process.stdout.readline().strip()
        if found != expected:
            raise AssertionError(f"a writer failed: {found}")

    def end(self) -> dict[str, object]:
        found, _ = self._process.communicate()
        written: dict[str, object] = json.loads(found)
        return written


def compare(connection: seachange.Connection, rows: int, ended: list[dict[str, object]]) -> int:
    """The number of rows that are not what they should be."""
    totals: dict[int, int] = {}
    for writer in ended:
        for row, count in dict(writer["counted"]).items():  # type: ignore[call-overload]
            totals[int(row)] = totals.get(int(row), 0) + int(count)
    inserted = sum(int(str(writer["inserted"])) for writer in ended)
    wrong = 0
    for id_, note, amount, counted in connection.execute("select id, note, amount, counted from thing"):
        number = int(id_)
        old = (f"note {number}", number * 7, totals.get(number, 0))
        wrong += (note, amount, counted) != (old if number <= rows else ("new", None, 0))
    found = connection.execute("select count(*), count(*) filter (where said = 'old ' || -id) from log").fetchall()
    keys = connection.execute("select count(*) from pg_constraint where contype = 'f'").fetchall()
    parts = connection.execute("select count(*) from part").fetchall()
    things = connection.execute("select count(*) from thing").fetchall()
    print(f"{rows} rows and {inserted} inserted ones: {wrong} wrong in thing, log has {found[0]}")
    wrong += found != [(rows + inserted, rows)]
    return wrong + (keys != [(2,)]) + (parts != [(rows // 10,)]) + (things != [(rows + inserted,)])


def run(rows: int, batches: int, data: str, catalog: str | None) -> int:
    with connect(data, catalog) as connection:
        for statement in SETUP:
            connection.execute(statement.format(rows=rows))
        writers = [Writer(number, rows, data, catalog) for number in (1, 2)]
        for change in CHANGES:
            connection.execute(change)
            for _ in range(batches):
                write_batch(writers)
            ((number,),) = connection.execute("select max(id) from seachange.changes").fetchall()
            for writer in writers:
                writer.ask()
            begun = time.monotonic()
            connection.execute(f"revert change {number}")
            print(f"{change}: reverted in {time.monotonic() - begun:.1f} s")
            for writer in writers:
                writer.wait()
        ended = [writer.end() for writer in writers]
        print("the slowest step of a writer took", max(round(float(str(w["slowest"])), 1) for w in ended), "s")
        wrong = compare(connection, rows, ended)
    command = ["check", "--full", "--data", data, *(["--catalog", catalog] if catalog is not None else [])]
    return wrong or seachange_command(command)


def write_batch(writers: list[Writer]) -> None:
    for writer in writers:
        writer.ask()
    for writer in writers:
        writer.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--data")
    parser.add_argument("--catalog")
    parser.add_argument("--writer", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.writer is not None:
        write(given.writer, given.rows, given.data, given.catalog)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return run(given.rows, given.batches, given.data or str(Path(folder) / "data"), given.catalog)


if __name__ == "__main__":
    sys.exit(main())
