"""DuckDB on plain Parquet files with default settings: neither transactions nor updates."""

import time
from collections.abc import Mapping
from pathlib import Path

import duckdb

from bench.peers.protocol import time_each

Aggregate = tuple[object, ...]


class PlainParquet:
    """One Parquet file behind one connection, which keeps its caches between queries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = duckdb.connect()
        self.connection.execute(f"create view t as from read_parquet('{path}')")

    def close(self) -> None:
        self.connection.close()

    def aggregate(self, sql: str) -> tuple[float, Aggregate]:
        start = time.perf_counter()
        (row,) = self.connection.execute(sql).fetchall()
        return time.perf_counter() - start, row

    def look_up(self, ids: list[int]) -> list[float]:
        """The seconds that each point SELECT took."""
        return time_each(self._look_up_one, ids)

    def _look_up_one(self, row_id: int) -> None:
        (row,) = self.connection.execute("select * from t where id = ?", (row_id,)).fetchall()
        assert row[0] == row_id


class PlainTables:
    """A Parquet file per table behind one connection."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.connection = duckdb.connect()
        for table, path in paths.items():
            self.connection.execute(f"create view {table} as from read_parquet('{path}')")

    def close(self) -> None:
        self.connection.close()

    def query(self, sql: str) -> tuple[float, list[Aggregate]]:
        start = time.perf_counter()
        rows = self.connection.execute(sql).fetchall()
        return time.perf_counter() - start, rows


def write_sorted(source: Path, target: Path, key: str, columns: str = "*") -> float:
    """Writes the rows, or some columns, sorted by the key; gives the seconds that it took."""
    query = f"select {columns} from read_parquet('{source}') order by {key}"
    with duckdb.connect() as connection:
        start = time.perf_counter()
        connection.execute(f"copy ({query}) to '{target}' (format parquet)")
        return time.perf_counter() - start
