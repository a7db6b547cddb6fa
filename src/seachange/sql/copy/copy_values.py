"""The values of a query as PostgreSQL shows them: by DuckDB where it shows the same, else one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seachange.storage.arrow import write_stored
from seachange.values.output_format import show_held
from seachange.values.types import Kind, SqlType


@dataclass(frozen=True, slots=True)
class Shown:
    """DuckDB text for a column, and what is left to do with its values."""

    sql: str
    show: Callable[[Any], str | None] | None = None


def shown(name: str, type_: SqlType | None, zone: str) -> Shown:
    """`type_` is None for what has none of our types."""
    if type_ is None:
        return Shown(f"CAST({name} AS VARCHAR)")
    if type_.element is not None or type_.kind in (Kind.INTERVAL, Kind.REAL, Kind.DOUBLE):
        return Shown(write_stored(name, type_), _shower(type_, zone))
    return Shown(_shown_by_duckdb(name, type_))


def _shower(type_: SqlType, zone: str) -> Callable[[Any], str | None]:
    return lambda value: None if value is None else show_held(type_, value, zone)


def _shown_by_duckdb(name: str, type_: SqlType) -> str:
    text = f"CAST({name} AS VARCHAR)"
    match type_.kind:
        case Kind.BOOLEAN:
            return f"CASE WHEN {name} THEN 't' WHEN NOT {name} THEN 'f' END"
        case Kind.BYTEA:
            return f"'\\x' || lower(hex({name}))"
        case Kind.CHAR:
            return f"rpad({text}, greatest({type_.length}, length({text}))::INTEGER, ' ')"
        case Kind.NUMERIC if not type_.precision:
            # It has eighteen digits behind its point, of which the last zeros do not show.
            return f"rtrim(rtrim({text}, '0'), '.')"
        case _:
            return text
