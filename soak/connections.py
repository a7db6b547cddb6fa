"""Connections of clients: over the wire by psycopg, or to an embedded node by `seachange.connect`."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg

import seachange

# After one of these the client does not know whether its commit took place.
UNKNOWN_STATES = frozenset({None, "40003", "08000", "08003", "08006", "08007", "57P01", "57P02", "57P03"})
CONNECT_SECONDS = 20
Rows = list[tuple[Any, ...]]


class Refused(Exception):
    """The database answered with an error, or (without an SQLSTATE) not at all."""

    def __init__(self, sqlstate: str | None, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate

    @property
    def is_unknown(self) -> bool:
        return self.sqlstate in UNKNOWN_STATES


class Connection(Protocol):
    def execute(self, sql: str, *values: Any) -> tuple[Rows, int]: ...

    def close(self) -> None: ...

    @property
    def is_broken(self) -> bool: ...


class Opener(Protocol):
    def open(self, chance: random.Random) -> Connection: ...


@dataclass(frozen=True, slots=True)
class WireOpener:
    """Connects to one of the nodes, whichever answers."""

    ports: tuple[int, ...]

    def open(self, chance: random.Random) -> Connection:
        url = f"postgresql://seachange@127.0.0.1:{chance.choice(self.ports)}/seachange"
        try:
            return WireConnection(psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS))
        except psycopg.Error as problem:
            raise Refused(problem.sqlstate, str(problem)) from problem


class WireConnection:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, *values: Any) -> tuple[Rows, int]:
        try:
            cursor = self._connection.execute(sql.encode(), values or None)
            return (cursor.fetchall() if cursor.description else []), cursor.rowcount
        except psycopg.Error as problem:
            raise Refused(problem.sqlstate, str(problem)) from problem

    @property
    def is_broken(self) -> bool:
        return self._connection.closed

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class EmbeddedOpener:
    data: str
    local: str | None
    catalog: str | None

    def open(self, chance: random.Random) -> Connection:
        try:
            return EmbeddedConnection(seachange.connect(self.data, self.catalog, local=self.local, autocommit=True))
        except seachange.Error as problem:
            raise Refused(problem.sqlstate, str(problem)) from problem


class EmbeddedConnection:
    def __init__(self, connection: seachange.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, *values: Any) -> tuple[Rows, int]:
        try:
            cursor = self._connection.execute(sql, values or None)
            return (list(cursor.fetchall()) if cursor.description else []), cursor.rowcount
        except seachange.Error as problem:
            raise Refused(problem.sqlstate, str(problem)) from problem

    @property
    def is_broken(self) -> bool:
        return False

    def close(self) -> None:
        self._connection.close()
