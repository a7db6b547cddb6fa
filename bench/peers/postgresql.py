"""PostgreSQL with the bulk rows in a table, as durable as it is by default, with as much memory for a sort as a kernel
of Seachange has."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psycopg

from bench.data import COLUMNS, rows_sql
from bench.harness import Unavailable
from tests.support.postgres import LocalPostgres, PostgresFailed

SETTINGS = {
    "maintenance_work_mem": "512MB",
    "shared_buffers": "1GB",
    # Checkpoints in the middle of a bulk write are no part of what is measured.
    "max_wal_size": "8GB",
}
CHUNK_BYTES = 1 << 20


class Server:
    """One connection, in which every statement commits by itself."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._connection = connection

    def load(self, folder: Path, rows: int) -> None:
        """Rows first, their key after: its faster way."""
        path = folder / "rows.csv"
        with duckdb.connect() as connection:
            connection.execute(f"copy ({rows_sql(rows)}) to '{path}' (format csv, header false)")
        self._connection.execute(f"create table t ({COLUMNS})")
        with (
            path.open("rb") as source,
            self._connection.cursor() as cursor,
            cursor.copy("copy t from stdin (format csv)") as copy,
        ):
            while chunk := source.read(CHUNK_BYTES):
                copy.write(chunk)
        path.unlink()
        self._connection.execute("alter table t add primary key (id)")
        self.settle()

    def settle(self) -> None:
        """What earlier statements left to be done is done before the next is measured."""
        self._connection.execute("vacuum analyze t")
        self._connection.execute("checkpoint")

    def execute(self, sql: str) -> float:
        """Runs any statement; its seconds."""
        start = time.perf_counter()
        self._connection.execute(sql)
        return time.perf_counter() - start


@contextmanager
def run_postgresql() -> Iterator[Server]:
    try:
        with (
            LocalPostgres(settings=SETTINGS) as server,
            psycopg.connect(server.create_database(), autocommit=True) as connection,
        ):
            yield Server(connection)
    except PostgresFailed as error:
        raise Unavailable(str(error)) from error
