"""Projections that read any layout as any version; compiled once per (stored columns, version's columns).

A column that the layout lacks reads as the value frozen when the column was added; a column that the version lacks is
skipped; a widened type is cast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column
from seachange.storage.arrow import column_name
from seachange.values.canonical import format_canonical, parse_canonical
from seachange.values.types import TEXT, Kind, SqlType

Row = tuple[Any, ...]
StoredColumns = tuple[tuple[ColumnId, SqlType], ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """The value at `position` of the stored row, cast from `old` if the column's type has changed."""

    position: int
    old: SqlType


@dataclass(frozen=True, slots=True)
class Frozen:
    """The layout is older than the column: all of its rows read as `value`."""

    value: Any


Source = Stored | Frozen


def sources(stored: StoredColumns, columns: Sequence[Column]) -> tuple[Source, ...]:
    """The source of each of a version's columns in a layout."""
    positions = {column_id: (position, type_) for position, (column_id, type_) in enumerate(stored)}
    return tuple(
        Stored(*positions[column.id]) if column.id in positions else Frozen(parse_canonical(column.type, column.frozen))
        for column in columns
    )


def compile_row(stored: StoredColumns, columns: Sequence[Column]) -> Callable[[Row], Row] | None:
    """A function from a stored row to the version's row; None if that is the row itself.

    Python values need no cast: every widening keeps the value (an int stays an int, text stays text).
    """
    plan = sources(stored, columns)
    if plan == tuple(Stored(position, type_) for position, (_, type_) in enumerate(stored)):
        return None
    steps = tuple((s.position, None) if isinstance(s, Stored) else (-1, s.value) for s in plan)

    def project(row: Row) -> Row:
        return tuple([row[position] if position >= 0 else value for position, value in steps])

    return project


def select_list(stored: StoredColumns, columns: Sequence[Column]) -> str:
    """The DuckDB select list that reads a layout as the version's columns, each under its `c<id>` name."""
    return ", ".join(
        f"{read_source(source, column)} AS {column_name(column.id)}"
        for source, column in zip(sources(stored, columns), columns, strict=True)
    )


def read_source(source: Source, column: Column) -> str:
    """DuckDB text for the value of a column."""
    if isinstance(source, Stored):
        name = column_name(column.id)
        return name if source.old.stored == column.type.duckdb else f"CAST({name} AS {column.type.duckdb})"
    return literal(column.type, source.value)


def literal(type_: SqlType, value: Any) -> str:
    if value is None:
        return f"CAST(NULL AS {type_.duckdb})"
    if isinstance(value, bytes):
        return f"CAST(unhex('{value.hex()}') AS {type_.duckdb})"
    if type_.element is not None:
        stored = TEXT if type_.element.kind is Kind.UUID else type_.element
        return f"CAST([{', '.join(literal(stored, element) for element in value)}] AS {type_.duckdb})"
    text = (format_canonical(type_, value) or "").replace("'", "''")
    return f"CAST('{text}' AS {type_.duckdb})"
