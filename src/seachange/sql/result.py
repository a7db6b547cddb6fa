"""What a statement answers with, and how DuckDB's types are called in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from seachange.model.shown import is_shown, shower
from seachange.model.types import NAMES, TEXT, Kind, SqlType, from_duckdb

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """`oid` is PostgreSQL's number of the type; `precision` and `scale` are those of a numeric, else 0. `is_shown`:
    clients get other values than rows hold."""

    name: str
    oid: int
    precision: int = 0
    scale: int = 0
    type: SqlType | None = None
    is_shown: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """`columns` is None for a statement that gives no rows; `count` is what the tag counts, -1 for nothing."""

    tag: str
    columns: tuple[ResultColumn, ...] | None = None
    rows: Sequence[Row] = ()
    count: int = -1


# A value that has none of our types is sent as text.
_BIT = ("BIT", 1560)


def show_in_zone(result: Result, zone: str) -> Result:
    """The values as clients get them: moments, which come in UTC, as a clock in the zone shows them."""
    if result.columns is None or not any(column.is_shown for column in result.columns):
        return result
    showers = [shower(c.type, zone) if c.type is not None else None for c in result.columns]
    if not any(showers):
        return result
    rows = [
        tuple([value if show is None else show(value) for value, show in zip(row, showers, strict=True)])
        for row in result.rows
    ]
    return replace(result, rows=rows)


def duck_column(name: str, duck_type: str, type_: SqlType | None = None) -> ResultColumn:
    """`type_` is that of the column that it is, if it is one."""
    found = type_ or from_duckdb(duck_type)
    if found is None:
        return ResultColumn(name, _BIT[1] if duck_type == _BIT[0] else NAMES[Kind.TEXT].oid)
    return table_column(name, found)


def table_column(name: str, type_: SqlType) -> ResultColumn:
    return ResultColumn(name, type_.oid, type_.precision, type_.scale, type_, is_shown(type_))


def column_type(type_name: str) -> SqlType:
    """The type of a column that has DuckDB's type; text where we have none."""
    return from_duckdb(type_name) or TEXT
