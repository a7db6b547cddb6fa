"""The query of a materialized view, a table that is filled by REFRESH only."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.values.types import SqlType


@dataclass(frozen=True, slots=True)
class MaterializedQuery:
    """The fields of a view, under the same names. `populated`: it may be read."""

    query: str
    columns: tuple[str, ...]
    relation_ids: tuple[DescriptorId, ...]
    column_uses: tuple[tuple[TableId, ColumnId], ...]
    names: tuple[tuple[str, str, DescriptorId], ...] = ()
    column_names: tuple[str, ...] = ()
    types: tuple[SqlType, ...] = ()
    populated: bool = True
