"""How messages show rows and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seachange.model.schema.descriptor import Column, Table
from seachange.storage.arrow import column_name
from seachange.storage.sorter import Sorter
from seachange.values.output_format import show_held

# The maximum number of rows in a message.
SHOWN_MAX = 5


def show_key(columns: Sequence[Column], values: Sequence[Any]) -> str:
    """PostgreSQL's format: (a, b)=(1, x)."""
    shown = ", ".join(
        "null" if value is None else str(show_held(column.type, value))
        for column, value in zip(columns, values, strict=True)
    )
    return f"({', '.join(c.name for c in columns)})=({shown})"


def naming_columns(table: Table) -> list[Column]:
    """The primary key; without a declared one, all visible columns."""
    key = [table.column_by_id[c] for c in table.primary.key]
    return list(table.visible_columns) if any(c.hidden for c in key) else key


def name_row(sorter: Sorter, source: str, table: Table) -> str:
    columns = naming_columns(table)
    names = ", ".join(column_name(c.id) for c in columns)
    return show_key(columns, sorter.fetch(f"SELECT {names} FROM {source}")[0])  # noqa: S608 - named by id


def show_keys(columns: Sequence[Column], keys: Sequence[Sequence[Any]], count: int) -> str:
    """Some of `count` keys."""
    shown = ", ".join(show_key(columns, key) for key in keys[:SHOWN_MAX])
    more = count - min(len(keys), SHOWN_MAX)
    return f"{shown} and {more} more" if more > 0 else shown
