"""CHECK and FOREIGN KEY constraints of a table.

**Invariant:** constraints name columns, tables and indexes by id, so that renames do not affect them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from seachange.model.ids import ColumnId, ConstraintId, IndexId, TableId
from seachange.model.states import State


class Action(StrEnum):
    """The action on rows that reference a key which is deleted or changed."""

    NO_ACTION = "NO ACTION"
    RESTRICT = "RESTRICT"
    CASCADE = "CASCADE"
    SET_NULL = "SET NULL"
    SET_DEFAULT = "SET DEFAULT"


class ConstraintKind(StrEnum):
    """Distinguishes constraints that have the same id."""

    CHECK = "check"
    NOT_NULL = "not null"
    UNIQUE = "unique"
    FOREIGN_KEY = "foreign key"


@dataclass(frozen=True, slots=True)
class Check:
    """`expression` is DuckDB text over columns named after their ids (`"c7"`), which are listed in `columns`.

    `not_valid`: it was added NOT VALID, and is visible as ENFORCED until VALIDATE makes it PUBLIC. Without it, an
    ENFORCED constraint is under construction, and the catalogs do not list it.
    """

    id: ConstraintId
    name: str
    expression: str
    columns: tuple[ColumnId, ...]
    state: State = State.PUBLIC
    not_valid: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` are in the order of the key columns of the parent's index `parent_index`. A row with a NULL among them
    references nothing (MATCH SIMPLE); with `match_full` only a row with nothing but NULLs does, and a mix is an
    error."""

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
    # As of an Index.
    uncommitted: bool = False

    def refers(self, values: tuple[Any, ...]) -> bool:
        """Whether a parent with these values must exist."""
        if self.match_full:
            return any(value is not None for value in values)
        return None not in values


def column_reference(column_id: ColumnId) -> str:
    """The name of a column in the text of a CHECK."""
    return f'"c{column_id}"'
