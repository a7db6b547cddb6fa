"""Random histories of a table: after each, and at each snapshot, other engines read the rows that SQL showed."""

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.environment import ROOT, Unavailable, iceberg
from tests.iceberg.reading import Lake, Rows, in_order, open_lake, read

STEPS = 14


class History:
    """A table whose rows and columns change at random."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self.lake = lake
        self.random = random.Random(seed)
        self.next_id = 1
        self.next_column = 1
        self.columns: dict[str, str] = {}
        # The rows of each snapshot that was exported, as SQL showed them.
        self.seen: dict[int, Rows] = {}
        lake.run("create table t (id bigint primary key, s text)")
        self.bulk()

    def step(self) -> None:
        actions: list[Callable[[], None]] = [
            *(self.insert, self.update, self.delete, self.bulk) * 2,
            *(self.add, self.add, self.drop, self.rename, self.widen, self.rebuild, self.compact, self.compact_fully),
        ]
        self.random.choice(actions)()

    def bulk(self) -> None:
        count = self.random.choice((20, 6_000))
        self.lake.run(
            f"insert into t (id, s) select i, 's' || i from generate_series({self.next_id}, "
            f"{self.next_id + count - 1}) i"
        )
        self.next_id += count

    def insert(self) -> None:
        self.lake.run(f"insert into t (id, s) values ({self.next_id}, null)")
        self.next_id += 1

    def some(self) -> str:
        first = self.random.randrange(self.next_id)
        return f"id between {first} and {first + self.random.choice((0, 5, 700))}"

    def update(self) -> None:
        self.lake.run(f"update t set s = 'u{self.random.randrange(99)}' where {self.some()}")

    def delete(self) -> None:
        self.lake.run(f"delete from t where {self.some()}")

    def add(self) -> None:
        name = f"x{self.next_column}"
        self.next_column += 1
        type_, default = self.random.choice(
            (
                ("int", "7"),
                ("int", "null"),
                ("text", "'d''q'"),
                ("numeric(9,2)", "1.25"),
                ("date", "'2020-02-29'"),
                ("boolean", "true"),
                ("uuid", "'7d444840-9dc0-11d1-b245-5ffdce74fad2'"),
                ("timestamp", "'2021-01-02 03:04:05'"),
            )
        )
        self.columns[name] = type_
        self.lake.run(f"alter table t add column {name} {type_} default {default}")

    def any_column(self, type_: str | None = None) -> str | None:
        names = [name for name, found in self.columns.items() if type_ in (None, found)]
        return self.random.choice(names) if names else None

    def drop(self) -> None:
        if (name := self.any_column()) is not None:
            del self.columns[name]
            self.lake.run(f"alter table t drop column {name}")

    def rename(self) -> None:
        if (name := self.any_column()) is not None:
            new = f"x{self.next_column}"
            self.next_column += 1
            self.columns[new] = self.columns.pop(name)
            self.lake.run(f"alter table t rename column {name} to {new}")

    def widen(self) -> None:
        if (name := self.any_column("int")) is not None:
            self.columns[name] = "bigint"
            self.lake.run(f"alter table t alter column {name} type bigint")

    def rebuild(self) -> None:
        if (name := self.any_column()) is not None:
            self.columns[name] = "text"
            self.lake.run(f"alter table t alter column {name} type text using 'r' || coalesce({name}::text, '')")

    def compact(self) -> None:
        self.lake.node.compact(self.lake.table(), full=False)

    def compact_fully(self) -> None:
        self.lake.node.compact(self.lake.table(), full=True)

    def export(self) -> str:
        exported = self.lake.check()
        self.seen[exported.snapshot] = self.lake.sql()
        return exported.address


def run_history(data: Path, seed: int) -> tuple[str, Rows]:
    """Returns the address of the last metadata, and the rows."""
    with open_lake(data) as lake:
        history = History(lake, seed)
        for step in range(STEPS):
            history.step()
            if step % 4 == 3:
                history.export()
        address = history.export()
        snapshot = history.random.choice(list(history.seen))
        assert read(address, snapshot) == history.seen[snapshot], f"seed {seed}, snapshot {snapshot}"
        return address, lake.sql()


@pytest.mark.parametrize("seed", [1, 2])
def test_random_history(tmp_path: Path, seed: int):
    run_history(tmp_path / "data", seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_one_of_many_random_histories(tmp_path: Path, seed: int):
    run_history(tmp_path / "data", seed)


@pytest.mark.slow
def test_duckdb_reads_random_histories(tmp_path: Path):
    try:
        python = iceberg()
    except Unavailable as problem:
        pytest.skip(f"DuckDB's extensions for Iceberg are not available: {problem}")
    made = [run_history(tmp_path / str(seed), seed) for seed in range(200, 210)]
    command: list[str | Path] = [python, ROOT / "compat" / "iceberg_duckdb.py", *(address for address, _ in made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line, (_, rows) in zip(done.stdout.splitlines(), made, strict=True):
        expected = [{k: v.lower() if v in ("True", "False") else v for k, v in row.items()} for row in rows]
        assert in_order(json.loads(line)) == in_order(expected)
