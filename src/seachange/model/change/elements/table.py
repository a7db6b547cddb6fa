"""The elements of tables; columns, indexes and constraints are topics of their own."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import TableId


@dataclass(frozen=True, slots=True)
class TableElement:
    table_id: TableId


@dataclass(frozen=True, slots=True)
class TableParameter:
    """A storage parameter that is set."""

    table_id: TableId
    name: str
    value: str


TableTopic = TableElement | TableParameter
