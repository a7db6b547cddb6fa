"""SQL tests in files: the sqllogictest format, with several connections.

    statement ok                 the statement succeeds
    statement error 23505        it fails with this SQLSTATE
    statement count 3            it succeeds and counts this many rows
    query IT rowsort             the rows follow after ----, a tab between values; one letter per column
    connection con1              the next record runs on this connection

NULL is written NULL, an empty string (empty), booleans true and false. Lines that start with # are comments.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import seachange


@dataclass(frozen=True)
class Record:
    line: int
    connection: str
    directive: tuple[str, ...]
    sql: str
    expected: tuple[str, ...]


def read_records(text: str) -> Iterator[Record]:
    connection = "default"
    block: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.startswith("#"):
            continue
        if line.strip():
            block.append(line)
            continue
        if block and block[0].startswith("connection "):
            connection = block.pop(0).split()[1]
        if block:
            yield _record(number - len(block), connection, block)
            connection = "default"
        block = []


def _record(line: int, connection: str, block: list[str]) -> Record:
    directive, *body = block
    end = body.index("----") if "----" in body else len(body)
    return Record(line, connection, tuple(directive.split()), "\n".join(body[:end]), tuple(body[end + 1 :]))


def show(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case "":
            return "(empty)"
        case bytes():
            return "\\x" + value.hex()
        case _:
            return str(value)


class Runner:
    def __init__(self, data: Path, catalog: str | None) -> None:
        self._data = data
        self._catalog = catalog
        self._connections: dict[str, seachange.Connection] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def run(self, record: Record) -> None:
        match record.directive:
            case ("statement", "ok"):
                self._execute(record)
            case ("statement", "count", count):
                assert self._execute(record).rowcount == int(count)
            case ("statement", "error", code):
                assert self._failure(record) == code
            case ("query", types, *modes):
                self._query(record, types, "rowsort" in modes)
            case _:
                raise AssertionError(f"what is {record.directive}?")

    def _execute(self, record: Record) -> seachange.Cursor:
        if record.connection not in self._connections:
            connection = seachange.connect(self._data, self._catalog, autocommit=True)
            self._connections[record.connection] = connection
        return self._connections[record.connection].execute(record.sql)

    def _failure(self, record: Record) -> str | None:
        try:
            self._execute(record)
        except seachange.Error as error:
            return error.sqlstate
        return None

    def _query(self, record: Record, types: str, rowsort: bool) -> None:
        cursor = self._execute(record)
        assert cursor.description is not None
        assert len(cursor.description) == len(types)
        found = ["\t".join(show(value) for value in row) for row in cursor]
        expected = list(record.expected)
        assert (sorted(found) if rowsort else found) == (sorted(expected) if rowsort else expected)
