"""The order in which the clauses of one ALTER TABLE are carried out: PostgreSQL's, whatever order they are written in.

What goes, goes first, and what comes finds the types that columns have then. A default that is dropped is not
converted, a generated column that becomes a plain one keeps its values whatever becomes of those that it was generated
from, and a constraint may stand before the column that it is about.
"""

from __future__ import annotations

from collections.abc import Sequence

from seachange.model.statements.table_statements import (
    AddColumn,
    AddIdentity,
    AlterAction,
    AlterColumnType,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    DropNotNull,
    SetDefault,
)


def order_clauses(actions: Sequence[AlterAction]) -> list[AlterAction]:
    """Of the same kind as they are written."""
    added = {action.column.name for action in actions if isinstance(action, AddColumn)}
    read = {name for action in actions if isinstance(action, AlterColumnType) for name in _read(action)}
    return sorted(actions, key=lambda action: _turn(action, added, read))


def _read(action: AlterColumnType) -> tuple[str, ...]:
    return action.using.columns if action.using is not None else ()


def _turn(action: AlterAction, added: set[str], read: set[str]) -> int:
    match action:
        case DropColumn(name=name):
            # USING is about the rows as they were.
            return 2 if name in read else 0
        # PostgreSQL does not find a column that the statement adds: what is said of it counts for the rows to come.
        case SetDefault(name=name, default=None) | DropNotNull(name=name):
            return 4 if name in added else 0
        case DropConstraint() | DropExpression() | DropIdentity():
            return 0
        case AlterColumnType(name=name):
            return 4 if added & {name, *_read(action)} else 1
        case AddColumn():
            return 3
        case AddIdentity():
            # It takes a column that is NOT NULL.
            return 5
        case _:
            return 4
