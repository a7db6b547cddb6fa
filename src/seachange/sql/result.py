"""What a statement answers with, and how DuckDB's types are called in it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from seachange.model.timezone import UTC, find_zone
from seachange.model.types import NAMES, Kind, SqlType

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """`oid` is PostgreSQL's number of the type; `precision` and `scale` are those of a numeric, else 0."""

    name: str
    oid: int
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """`columns` is None for a statement that gives no rows; `count` is what the tag counts, -1 for nothing."""

    tag: str
    columns: tuple[ResultColumn, ...] | None = None
    rows: Sequence[Row] = ()
    count: int = -1


# DuckDB's types that are not a column's: PostgreSQL's nearest.
_OIDS: dict[str, int] = {
    **{names.duckdb: names.oid for names in NAMES.values() if "{" not in names.duckdb},
    "VARCHAR": NAMES[Kind.TEXT].oid,
    "TINYINT": NAMES[Kind.SMALLINT].oid,
    "UTINYINT": NAMES[Kind.SMALLINT].oid,
    "USMALLINT": NAMES[Kind.INTEGER].oid,
    "UINTEGER": NAMES[Kind.BIGINT].oid,
    "UBIGINT": NAMES[Kind.NUMERIC].oid,
    "HUGEINT": NAMES[Kind.NUMERIC].oid,
    "UHUGEINT": NAMES[Kind.NUMERIC].oid,
    "INTERVAL": 1186,
    "JSON": 114,
    "BIT": 1560,
    "TIMESTAMP_S": NAMES[Kind.TIMESTAMP].oid,
    "TIMESTAMP_MS": NAMES[Kind.TIMESTAMP].oid,
    "TIMESTAMP_NS": NAMES[Kind.TIMESTAMP].oid,
}
_MOMENT_OID = NAMES[Kind.TIMESTAMPTZ].oid
# Anything else is sent as text.
_TEXT_OID = NAMES[Kind.TEXT].oid


def show_in_zone(result: Result, zone: str) -> Result:
    """The same moments, as a clock in the zone shows them. They come in UTC."""
    places = [i for i, column in enumerate(result.columns or ()) if column.oid == _MOMENT_OID]
    if zone == UTC or not places:
        return result
    info = find_zone(zone)
    rows = [
        tuple([v.astimezone(info) if i in places and isinstance(v, dt.datetime) else v for i, v in enumerate(row)])
        for row in result.rows
    ]
    return replace(result, rows=rows)


def duck_column(name: str, type_name: str) -> ResultColumn:
    if type_name.startswith("DECIMAL("):
        precision, scale = type_name[8:-1].split(",")
        return ResultColumn(name, NAMES[Kind.NUMERIC].oid, int(precision), int(scale))
    return ResultColumn(name, _OIDS.get(type_name, _TEXT_OID))


def table_column(name: str, type_: SqlType) -> ResultColumn:
    return ResultColumn(name, NAMES[type_.kind].oid, type_.precision, type_.scale)
