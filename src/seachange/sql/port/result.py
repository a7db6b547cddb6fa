"""What a statement answers with, and how DuckDB's types are called in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from seachange.values.output_format import is_shown, shower
from seachange.values.types import NAMES, TEXT, Kind, SqlType, computed_type, from_duckdb

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """PostgreSQL's number of a table, and that of a column among those that clients see, from 1."""

    table: int
    attribute: int


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """`oid` is PostgreSQL's number of the type; `precision` and `scale` are those of a numeric, else 0. `is_shown`:
    clients get other values than rows hold. `origin` is the column of a table that it is, if it is one."""

    name: str
    oid: int
    precision: int = 0
    scale: int = 0
    type: SqlType | None = None
    is_shown: bool = False
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """`columns` is None for a statement that gives no rows; `count` is what the tag counts, -1 for nothing."""

    tag: str
    columns: tuple[ResultColumn, ...] | None = None
    rows: Sequence[Row] = ()
    count: int = -1


class RowSink(Protocol):
    """Who takes the rows of a query while it runs, if they are many."""

    @property
    def is_begun(self) -> bool:
        """Whether it has taken any: then the statement is not run again."""

    def begin(self, columns: tuple[ResultColumn, ...]) -> None: ...

    def take(self, rows: Sequence[Row]) -> None: ...


# A value that has none of our types is sent as text.
_BIT = ("BIT", 1560)


def show_in_zone(result: Result, zone: str) -> Result:
    """The values as clients get them: moments, which come in UTC, as a clock in the zone shows them."""
    show = row_shower(result.columns, zone) if result.columns is not None else None
    return result if show is None else replace(result, rows=show(result.rows))


def row_shower(columns: Sequence[ResultColumn], zone: str) -> Callable[[Sequence[Row]], Sequence[Row]] | None:
    """None where clients get what rows hold."""
    if not any(column.is_shown for column in columns):
        return None
    showers = [shower(column.type, zone) if column.type is not None else None for column in columns]
    if not any(showers):
        return None
    return lambda rows: [
        tuple([value if show is None else show(value) for value, show in zip(row, showers, strict=True)])
        for row in rows
    ]


def duck_column(name: str, duck_type: str, type_: SqlType | None = None, origin: Origin | None = None) -> ResultColumn:
    """`type_` and `origin` are those of the column that it is, if it is one."""
    found = type_ or computed_type(duck_type)
    if found is None:
        return ResultColumn(name, _BIT[1] if duck_type == _BIT[0] else NAMES[Kind.TEXT].oid)
    return table_column(name, found, origin)


def table_column(name: str, type_: SqlType, origin: Origin | None = None) -> ResultColumn:
    digits = (type_.precision, type_.scale) if type_.kind is Kind.NUMERIC and type_.precision else (0, 0)
    return ResultColumn(name, type_.oid, *digits, type_, is_shown(type_), origin)


def column_type(type_name: str) -> SqlType:
    """The type of a column that has DuckDB's type; text where we have none."""
    return from_duckdb(type_name) or TEXT
