"""Other engines read a table while it changes its shape, and while it is written to: pyiceberg, DuckDB and Spark, each
in a process of its own, print the same sums as SQL, at the snapshot that they have read.

  python examples/iceberg/changing_shape.py [--duckdb PYTHON] [--spark PYTHON]

PYTHON is the interpreter of an environment with duckdb 1.5.5 and its extensions (compat/iceberg-requirements.txt), or
with PySpark 3.5 and Iceberg 1.9 (compat/iceberg-spark-requirements.txt); without them only pyiceberg reads. Exits
with 1 if a sum differs.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

HERE = Path(__file__).resolve().parent
USER, PASSWORD, TABLE = "seachange", "example", "public.account"
ROWS = 20_000
SETUP = (
    "CREATE TABLE account (id int PRIMARY KEY, owner text NOT NULL, amount int NOT NULL, weight real)",
    f"INSERT INTO account SELECT i, 'owner ' || i, 100, 0.5 FROM generate_series(1, {ROWS}) i",
)
CHANGES = (
    "ALTER TABLE account ADD COLUMN bonus numeric(9,2) DEFAULT 2.50",
    "ALTER TABLE account RENAME COLUMN amount TO balance",
    "ALTER TABLE account ALTER COLUMN balance TYPE bigint",
    "ALTER TABLE account DROP COLUMN weight",
    "ALTER TABLE account ALTER COLUMN bonus TYPE int USING (bonus * 100)::int",
    "VACUUM FULL account",
    "CREATE INDEX ON account (owner)",
    "ALTER TABLE account ADD COLUMN points smallint NOT NULL DEFAULT 7",
    "ALTER TABLE account RENAME COLUMN bonus TO cents",
    "VACUUM account",
)


@contextmanager
def serving(data: str) -> Iterator[tuple[str, str]]:
    """The URLs of a server: of SQL, and of the Iceberg catalog."""
    command = [str(Path(sys.executable).parent / "seachange"), "serve", "--data", data]
    command += ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    environment = {**os.environ, "SEACHANGE_PASSWORD": PASSWORD}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        ports = [re.search(r":(\d+)$", server.stdout.readline().strip()) for _ in range(2)]
        assert ports[0] is not None
        assert ports[1] is not None
        try:
            yield (
                f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{ports[0][1]}/seachange",
                f"http://127.0.0.1:{ports[1][1]}/iceberg",
            )
        finally:
            server.terminate()


class Reader:
    """A process that reads the table when it is asked to."""

    def __init__(self, name: str, python: str, script: str, catalog: str) -> None:
        self.name = name
        command = [python, str(HERE / script), catalog, USER, PASSWORD, TABLE]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("next\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} has ended")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def write_rows(url: str, stop: threading.Event, failures: list[str]) -> None:
    """Inserts, updates and deletes rows of the table, whatever its shape is."""
    choose = random.Random(1)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            number = ROWS
            while not stop.is_set():
                number += 1
                first = choose.randrange(ROWS)
                connection.execute(
                    "UPDATE account SET owner = owner || '.' WHERE id BETWEEN %s AND %s", (first, first + 3)
                )
                connection.execute("DELETE FROM account WHERE id = %s", (choose.randrange(ROWS),))
                column = "balance" if has_column(connection, "balance") else "amount"
                try:
                    connection.execute(
                        f"INSERT INTO account (id, owner, {column}) VALUES (%s, 'new', %s)",
                        (number, choose.randrange(900)),
                    )
                except psycopg.errors.UndefinedColumn:
                    # It was renamed in the meantime.
                    continue
    except psycopg.Error as problem:
        failures.append(str(problem))


def has_column(connection: psycopg.Connection[Any], name: str) -> bool:
    query = "SELECT 1 FROM information_schema.columns WHERE table_name = 'account' AND column_name = %s"
    return connection.execute(query, (name,)).fetchone() is not None


def shown_by_sql(connection: psycopg.Connection[Any], snapshot: int) -> dict[str, Any]:
    """The same at a snapshot, which is a sequence number of the commit log."""
    connection.execute(f"SET seachange.as_of = '{snapshot}'")
    cursor = connection.execute("SELECT * FROM account LIMIT 1")
    numbers = {20, 21, 23, 700, 701, 1700}
    columns = [column.name for column in cursor.description or () if column.type_code in numbers]
    sums = ", ".join(f'sum("{name}")' for name in columns)
    found = connection.execute(f"SELECT count(*), {sums} FROM account".encode()).fetchone()
    connection.execute("RESET seachange.as_of")
    assert found is not None
    rows, *totals = found
    return {"snapshot": snapshot, "rows": rows, "sums": dict(zip(columns, map(float, totals), strict=True))}


def run(catalog: str, url: str, others: list[tuple[str, str, str]]) -> int:
    """The number of readings that differ from SQL."""
    with ExitStack() as stack:
        readers = [Reader("pyiceberg", sys.executable, "read_pyiceberg.py", catalog)]
        readers += [Reader(name, python, script, catalog) for name, python, script in others]
        for reader in readers:
            stack.callback(reader.close)
        connection = stack.enter_context(psycopg.connect(url, autocommit=True))
        for statement in SETUP:
            connection.execute(statement.encode())
        stop, failures = threading.Event(), list[str]()
        writer = threading.Thread(target=write_rows, args=(url, stop, failures))
        writer.start()
        stack.callback(writer.join)
        stack.callback(stop.set)
        differing = 0
        for change in ("", *CHANGES):
            if change:
                print(f"{change};", flush=True)
                connection.execute(change.encode())
            for reader in readers:
                reader.ask()
            for reader in readers:
                found = reader.answer()
                wanted = shown_by_sql(connection, found["snapshot"])
                differing += found != wanted
                mark = "=" if found == wanted else f"differs from SQL: {wanted}"
                print(f"  {reader.name:10}{json.dumps(found)} {mark}", flush=True)
    for failure in failures:
        print(f"  the writer failed: {failure}")
    return differing + len(failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duckdb", metavar="PYTHON")
    parser.add_argument("--spark", metavar="PYTHON")
    arguments = parser.parse_args()
    others = [("DuckDB", arguments.duckdb, "read_duckdb.py"), ("Spark", arguments.spark, "read_spark.py")]
    with tempfile.TemporaryDirectory() as data, serving(data) as (url, catalog):
        return 1 if run(catalog, url, [other for other in others if other[1] is not None]) else 0


if __name__ == "__main__":
    sys.exit(main())
