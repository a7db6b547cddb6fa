"""COPY TO output: values as PostgreSQL prints them, by DuckDB where it prints the same, otherwise one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seachange.storage.arrow import write_stored
from seachange.values.output_format import show_held
from seachange.values.types import Kind, SqlType


@dataclass(frozen=True, slots=True)
class Shown:
    """DuckDB text for a column, and the conversion that is left to do."""

    sql: str
    show: Callable[[Any], str | None] | None = None


def shown(name: str, type_: SqlType | None, zone: str) -> Shown:
    """`type_` is None for a value that has none of our types."""
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
            # It has 18 digits after the decimal point; trailing zeros are not shown.
            return f"rtrim(rtrim({text}, '0'), '.')"
        case _:
            return text
