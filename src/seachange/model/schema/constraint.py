"""CHECK and FOREIGN KEY constraints of a table, as values.

**Invariant:** constraints name columns, tables and indexes by their ids, so that no rename touches them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from seachange.model.ids import ColumnId, ConstraintId, IndexId, TableId
from seachange.model.states import State


class Action(StrEnum):
    """What happens to the rows that refer to a key which is deleted or changed."""

    NO_ACTION = "NO ACTION"
    RESTRICT = "RESTRICT"
    CASCADE = "CASCADE"
    SET_NULL = "SET NULL"
    SET_DEFAULT = "SET DEFAULT"


@dataclass(frozen=True, slots=True)
class Check:
    """`expression` is DuckDB text over columns named after their ids (`"c7"`), which are listed in `columns`.

    `not_valid` says that it was added so: until VALIDATE makes it PUBLIC it is known to all as ENFORCED. Without it an
    ENFORCED one is on its way, and the catalogs do not tell of it.
    """

    id: ConstraintId
    name: str
    expression: str
    columns: tuple[ColumnId, ...]
    state: State = State.PUBLIC
    not_valid: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` stand in the order of the key columns of the parent's index `parent_index`. A row with a NULL among
    them refers to nothing (MATCH SIMPLE); with `match_full` one that has only NULLs does, and others may have none."""

    id: ConstraintId
    name: str
    columns: tuple[ColumnId, ...]
    parent: TableId
    parent_index: IndexId
    on_delete: Action = Action.NO_ACTION
    on_update: Action = Action.NO_ACTION
    deferrable: bool = False
    initially_deferred: bool = False
    state: State = State.PUBLIC
    match_full: bool = False
    # As of a Check.
    not_valid: bool = False

    def refers(self, values: tuple[Any, ...]) -> bool:
        """Whether there must be a parent with these values, or none may have them."""
        if self.match_full:
            return any(value is not None for value in values)
        return None not in values


def column_reference(column_id: ColumnId) -> str:
    """A column as the text of a CHECK names it."""
    return f'"c{column_id}"'
