"""A running database, asked over PostgreSQL's protocol. Nothing is changed: the transaction is read-only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from seachange import errors


class ServedDatabase:
    def __init__(self, connection: psycopg.Connection[tuple[str]]) -> None:
        self._connection = connection

    def explain(self, text: str) -> str:
        try:
            row = self._connection.execute(text.encode()).fetchone()
        except psycopg.Error as problem:
            raise errors.remembered(problem.sqlstate or "08006", str(problem).splitlines()[0]) from problem
        assert row is not None
        return row[0]


@contextmanager
def connected(url: str) -> Iterator[ServedDatabase]:
    try:
        connection = psycopg.connect(url, autocommit=True, application_name="seachange plan")
    except psycopg.Error as problem:
        raise errors.remembered(problem.sqlstate or "08001", str(problem)) from problem
    with connection:
        connection.execute("SET default_transaction_read_only = on")
        yield ServedDatabase(connection)
