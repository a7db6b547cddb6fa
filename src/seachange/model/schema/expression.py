"""Expressions in descriptors: bound to column ids, so that renames do not affect them."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import ColumnId


@dataclass(frozen=True, slots=True)
class Expression:
    """`text` is DuckDB text over columns named after their ids (`"c7"`), which are listed in `columns`."""

    text: str
    columns: tuple[ColumnId, ...] = ()
