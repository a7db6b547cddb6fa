"""The same statements on PostgreSQL and on this engine, and what their answers have in common."""

import datetime as dt
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg

import seachange
from seachange.engine.api import Connection
from seachange.errors import Error
from seachange.values.array_text import show_array
from seachange.values.interval import Interval
from tests.support.postgres import LocalPostgres

ROLE = "seachange"
DATABASE = "seachange"
# What the first role here may do.
_POWERS = "SUPERUSER CREATEDB CREATEROLE REPLICATION BYPASSRLS"
# OIDs of user-created objects start here, in both.
FIRST_OID = 16384
_DOCUMENTS = (114, 3802)
_SIZES = frozenset({2**31 - 1, 2**63 - 1})


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows in no order, or the code of an error. `columns` are the names and types of result columns."""

    rows: tuple[tuple[Any, ...], ...] | None
    sqlstate: str | None = None
    columns: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Both:
    postgres: psycopg.Connection[Any]
    ours: Connection

    def ask_postgres(self, text: str) -> Answer:
        try:
            cursor = self.postgres.execute(text.encode())
            columns = _columns([(column.name, column.type_code) for column in cursor.description or ()])
            return Answer(tuple(cursor.fetchall()) if cursor.description else (), columns=columns)
        except psycopg.Error as error:
            return Answer(None, error.sqlstate)

    def ask_ours(self, text: str) -> Answer:
        cursor = self.ours.cursor()
        try:
            cursor.execute(text)
            columns = _columns([(column[0], column[1]) for column in cursor.description or ()])
            rows = _documents(cursor.description, cursor.fetchall()) if cursor.description else ()
            return Answer(rows, columns=columns)
        except Error as error:
            return Answer(None, error.sqlstate)

    def run(self, script: str) -> None:
        """On both; neither may fail."""
        self.postgres.execute(script.encode())
        self.ours.cursor().execute(script)


def _columns(found: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Types that users create have numbers of their own in both."""
    return tuple((name, min(type_, FIRST_OID)) for name, type_ in found)


def _documents(description: Sequence[Sequence[Any]], rows: Sequence[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    """A document as psycopg gives it, which reads what PostgreSQL sends."""
    read = [column[1] in _DOCUMENTS for column in description]
    of_users = [column[1] >= FIRST_OID for column in description]
    return tuple(
        tuple(
            _document(value) if is_read and isinstance(value, str) else _labels(value) if is_user else value
            for value, is_read, is_user in zip(row, read, of_users, strict=True)
        )
        for row in rows
    )


def _labels(value: Any) -> Any:
    """An array of labels as psycopg gives it, to which its type is not known."""
    return show_array(value) if isinstance(value, list) else value


@contextmanager
def open_both(server: LocalPostgres, folder: Path) -> Iterator[Both]:
    """Two empty databases of the same name, with the same role."""
    server.start()
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        admin.execute(f"DROP ROLE IF EXISTS {ROLE}")
        admin.execute(f"CREATE ROLE {ROLE} {_POWERS} LOGIN PASSWORD 'x'")
        admin.execute(f"CREATE DATABASE {DATABASE} OWNER {ROLE}")
    url = re.sub(r"//[^@]*@", f"//{ROLE}:x@", server.database_url(DATABASE))
    ours = seachange.connect(data=str(folder))
    ours.autocommit = True
    try:
        with psycopg.connect(url, autocommit=True) as postgres:
            postgres.execute("SET TimeZone = 'UTC'")
            # As it is here from the start.
            postgres.execute(f"ALTER SCHEMA public OWNER TO {ROLE}; COMMENT ON SCHEMA public IS NULL")
            yield Both(postgres, ours)
    finally:
        ours.close()
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
            admin.execute(f"DROP ROLE {ROLE}")


def _document(text: str) -> Any:
    with suppress(ValueError):
        return json.loads(text)
    return f"no document: {text}"


def plain(value: Any) -> Any:
    """A value such that the same is equal: numbers of objects have none, white space and letters of types do not
    count."""
    match value:
        case bool():
            return value
        case int() if value >= FIRST_OID and value not in _SIZES:
            return "number of an object"
        case float() | Decimal():
            return float(f"{float(value):.12g}")
        case str() if value.startswith('{"'):
            return plain(json.loads(value))
        case str():
            return " ".join(value.split())
        case dict():
            return tuple((key, plain(item)) for key, item in value.items())
        case Interval():
            # As psycopg counts: towards zero.
            years = int(value.months / 12)
            months = value.months - years * 12
            return (years * 365 + months * 30 + value.days) * 86400 + value.microseconds / 1e6
        case list() | tuple():
            return tuple(plain(item) for item in value)
        case dt.timedelta():
            return value.total_seconds()
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC)
        case memoryview():
            return bytes(value)
        case _:
            return value


def comparable(answer: Answer) -> list[str] | str:
    if answer.rows is None:
        return f"error {answer.sqlstate}"
    return sorted(repr(plain(row)) for row in answer.rows)


def valued(value: Any) -> Any:
    """A value such that the same is equal, whatever type of number it has."""
    match value:
        case bool():
            return value
        case int():
            return plain(float(value))
        case list():
            return tuple(valued(item) for item in value)
        case str() if value[:1] in ("[", "{"):
            with suppress(ValueError):
                return valued(json.loads(value))
            return value
        case dict():
            return tuple((key, valued(item)) for key, item in value.items())
        case _:
            return plain(value) if not isinstance(value, str) else value


def values(answer: Answer) -> list[str] | str:
    if answer.rows is None:
        return f"error {answer.sqlstate}"
    return sorted(repr(tuple(valued(value) for value in row)) for row in answer.rows)
