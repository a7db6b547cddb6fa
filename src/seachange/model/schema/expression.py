"""An expression in a descriptor: bound, so that no rename touches it."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import ColumnId


@dataclass(frozen=True, slots=True)
class Expression:
    """`text` is DuckDB text over columns named after their ids (`"c7"`), which are listed in `columns`."""

    text: str
    columns: tuple[ColumnId, ...] = ()
