"""PostgreSQL with the bulk rows in a table, as durable as it is by default, with as much memory for a sort as a kernel
of Seachange has."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psycopg

from bench.data import COLUMNS, rows_sql
from bench.harness import Unavailable
from tests.support.postgres import INSTALLATIONS, LocalPostgres, PostgresFailed

SETTINGS = {
    "maintenance_work_mem": "512MB",
    "shared_buffers": "1GB",
    # Checkpoints in the middle of a bulk write are no part of what is measured.
    "max_wal_size": "8GB",
}
CHUNK_BYTES = 1 << 20
NEWEST_VERSION = max(INSTALLATIONS)


class Server:
    """One connection, in which every statement commits by itself."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._connection = connection

    def load(self, folder: Path, rows: int) -> None:
        """Rows first, then their key: the faster way."""
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
        """Finishes the background work of earlier statements before the next one is measured."""
        self._connection.execute("vacuum analyze t")
        self._connection.execute("checkpoint")

    def execute(self, sql: str) -> float:
        """Runs any statement; returns its seconds."""
        start = time.perf_counter()
        self._connection.execute(sql)
        return time.perf_counter() - start


class PostgresTemplate:
    """A database of which copies are made, each as fresh as it is."""

    def __init__(self, server: LocalPostgres, name: str) -> None:
        self._server = server
        self._name = name

    @contextmanager
    def copied(self) -> Iterator[str]:
        """The address of a copy, which is dropped after the block."""
        url = f"{self._server.url.rsplit('/', 1)[0]}/copied"
        with psycopg.connect(self._server.url, autocommit=True) as connection:
            connection.execute(f"create database copied template {self._name} strategy file_copy".encode())
            try:
                with psycopg.connect(url, autocommit=True) as copy:
                    # What reads a page first would otherwise pay for those who wrote it.
                    copy.execute("vacuum analyze")
                    copy.execute("checkpoint")
                yield url
            finally:
                connection.execute("drop database copied with (force)")


@contextmanager
def serve_template(folder: Path, rows: int, extra: Sequence[str]) -> Iterator[PostgresTemplate]:
    """The newest PostgreSQL, with the bulk rows, and what the extra statements make."""
    try:
        with LocalPostgres(settings=SETTINGS, version=NEWEST_VERSION) as server:
            url = server.create_database()
            with psycopg.connect(url, autocommit=True) as connection:
                Server(connection).load(folder, rows)
                for statement in extra:
                    connection.execute(statement.encode())
            yield PostgresTemplate(server, url.rsplit("/", 1)[1])
    except PostgresFailed as error:
        raise Unavailable(str(error)) from error


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
