"""Elements of views."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.values.types import SqlType


@dataclass(frozen=True, slots=True)
class ViewElement:
    view_id: DescriptorId


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """Of a view, or of a materialized one, which is a table. `relation_ids` are those that it reads, `column_uses` the
    columns (table, column) among them. The text knows them by the names that they had: `names` are those of relations
    (schema, name, id), the schema empty where the text has none; `column_names` those of the columns. `types` are those
    of the view's own columns."""

    view_id: DescriptorId
    query: str
    columns: tuple[str, ...]
    relation_ids: tuple[DescriptorId, ...]
    column_uses: tuple[tuple[TableId, ColumnId], ...]
    names: tuple[tuple[str, str, DescriptorId], ...] = ()
    column_names: tuple[str, ...] = ()
    types: tuple[SqlType, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewRows:
    """Whether a materialized view has been filled since it was created, or emptied."""

    view_id: DescriptorId
    populated: bool


ViewTopic = ViewElement | ViewQuery | ViewRows
