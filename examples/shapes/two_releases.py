"""Two releases of a program on one table, one of which knows a name and the other its two parts.

    python examples/shapes/two_releases.py [--seconds N] [--data DIR] [--catalog URL]

A process of release 1 inserts and changes rows for the whole time. Meanwhile the column `name` is split into `first`
and `last`, and a process of release 2 begins to do the same in the new shape. Both also count in the same rows. In the
end every row is read in both shapes and compared with what was written, and every index is compared with its rows.
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
    "create table person (id bigint primary key, name text not null, counted int not null default 0)",
    "insert into person (id, name) select -i, 'F' || i || ' L' || i from generate_series(1, 1000) g(i)",
    "create shape release_1",
)
SPLIT = (
    "alter table person add column first text not null up using (split_part(name, ' ', 1)), "
    "add column last text not null up using (split_part(name, ' ', 2)), "
    "drop column name down using (first || ' ' || last)"
)
# What a release writes, and the shape that it is pinned to.
RELEASES = {
    1: (
        "release_1",
        "insert into person (id, name) values (%s, %s || ' ' || %s)",
        "update person set name = %s || ' ' || %s where id = %s",
    ),
    2: (
        "",
        "insert into person (id, first, last) values (%s, %s, %s)",
        "update person set first = %s, last = %s where id = %s",
    ),
}
COUNT = "update person set counted = counted + 1 where id = %s"


def connect(data: str, catalog: str | None, shape: str = "") -> seachange.Connection:
    connection = seachange.connect(data=data, catalog=catalog, autocommit=True)
    connection.execute(f"set seachange.layout = '{shape}'")
    return connection


def write(release: int, data: str, catalog: str | None) -> None:
    """Until its input ends; then it prints what its rows are, and how often it has counted."""
    shape, insert, update = RELEASES[release]
    names: dict[int, tuple[str, str]] = {}
    counted = 0
    chance = random.Random(release)
    # Even numbers are those of one release, odd ones those of the other.
    with connect(data, catalog, shape) as connection:
        print("ready", flush=True)
        for id_ in _until_stopped(itertools.count(release, 2)):
            names[id_] = (f"A{id_}", f"B{chance.randrange(1000)}")
            connection.execute(insert, (id_, *names[id_]))
            changed = chance.choice(list(names)[-100:])
            names[changed] = (f"C{chance.randrange(1000)}", f"D{changed}")
            connection.execute(update, (*names[changed], changed))
            connection.execute(COUNT, (-chance.randint(1, 1000),))
            counted += 1
    print(json.dumps({"names": names, "counted": counted}), flush=True)


def _until_stopped(numbers: Iterator[int]) -> Iterator[int]:
    """The main process asks for each batch of rows."""
    for _ in sys.stdin:
        yield from itertools.islice(numbers, 10)
        print("written", flush=True)


class Writer:
    """A process of one release."""

    def __init__(self, release: int, data: str, catalog: str | None) -> None:
        command = [sys.executable, __file__, "--data", data, "--release", str(release)]
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

    def end(self) -> tuple[dict[int, tuple[str, str]], int]:
        found, _ = self._process.communicate()
        written = json.loads(found)
        return {int(id_): (first, last) for id_, (first, last) in written["names"].items()}, written["counted"]


def compare(data: str, catalog: str | None, names: dict[int, tuple[str, str]], counted: int) -> int:
    """The number of rows that are not as they were written, in one of the shapes."""
    expected = names | {-i: (f"F{i}", f"L{i}") for i in range(1, 1001)}
    with connect(data, catalog) as new, connect(data, catalog, "release_1") as old:
        split = {id_: (first, last) for id_, first, last in new.execute("select id, first, last from person")}
        whole = {id_: str(name) for id_, name in old.execute("select id, name from person")}
        ((total,),) = new.execute("select sum(counted) from person").fetchall()
    wrong = [id_ for id_ in expected if split.get(id_) != expected[id_] or whole.get(id_) != " ".join(expected[id_])]
    print(f"{len(expected)} rows, {len(wrong)} of them wrong; counted {total} of {counted}")
    return len(wrong) + len(split.keys() ^ expected.keys()) + abs(int(total) - counted)


def run(seconds: float, batches: int, data: str, catalog: str | None) -> int:
    with connect(data, catalog) as connection:
        for statement in SETUP:
            connection.execute(statement)
        first = Writer(1, data, catalog)
        first.ask()
        connection.execute(SPLIT)
        print("split name into first and last")
        second = Writer(2, data, catalog)
        first.wait()
        until, turn = time.monotonic() + seconds, 0
        while turn < batches or time.monotonic() < until:
            for writer in (first, second):
                writer.ask()
            for writer in (first, second):
                writer.wait()
            turn += 1
        (old, old_counted), (new, new_counted) = first.end(), second.end()
        print(f"release 1 wrote {len(old)} rows, release 2 {len(new)}")
        wrong = compare(data, catalog, old | new, old_counted + new_counted)
    command = ["check", "--full", "--data", data, *(["--catalog", catalog] if catalog is not None else [])]
    return wrong or seachange_command(command)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long both write (default: 60)")
    parser.add_argument("--batches", type=int, default=1, help="the least number of batches of rows")
    parser.add_argument("--data", help="the folder of the database (default: a temporary one)")
    parser.add_argument("--catalog", help="the URL of the catalog (default: SQLite in the folder)")
    parser.add_argument("--release", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.release is not None:
        write(arguments.release, arguments.data, arguments.catalog)
        return 0
    if arguments.data is not None:
        return run(arguments.seconds, arguments.batches, arguments.data, arguments.catalog)
    with tempfile.TemporaryDirectory() as folder:
        return run(arguments.seconds, arguments.batches, str(Path(folder) / "database"), arguments.catalog)


if __name__ == "__main__":
    raise SystemExit(main())
