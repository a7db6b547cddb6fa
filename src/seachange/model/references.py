"""Which tables refer to which: foreign keys as their parents see them, derived from the tables of one snapshot."""

from __future__ import annotations

from collections.abc import Iterable

from seachange.model.constraint import ForeignKey
from seachange.model.descriptor import Table
from seachange.model.ids import TableId

Reference = tuple[Table, ForeignKey]


def references_to(tables: Iterable[Table], parent: TableId) -> tuple[Reference, ...]:
    """The foreign keys that refer to a table, each with the table that has it; its own included."""
    return tuple((table, key) for table in tables for key in table.foreign_keys if key.parent == parent)
