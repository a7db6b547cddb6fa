"""Statements that take two changes, one after the other.

A writer that changes a row before its value is drawn cannot tell which entry of an index goes. So a key on
a column whose values are drawn is made when the rows have them: the column comes first, and everything else then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from seachange.model import statements
from seachange.planner.builders.column import is_computed

# What may come with the second change. Others are for the user to resolve.
_FOLLOWING = (
    statements.AddConstraint,
    statements.DropColumn,
    statements.DropConstraint,
    statements.DropNotNull,
    statements.SetDefault,
    statements.SetNotNull,
)


def split_statement(statement: statements.AlterTable) -> tuple[statements.AlterTable, statements.AlterTable] | None:
    """The columns, and what comes after them; None if the statement is one change."""
    added = {
        a.column.name: a for a in statement.actions if isinstance(a, statements.AddColumn) and is_computed(a.column)
    }
    first: list[statements.AlterAction] = []
    then: list[statements.AlterAction] = []
    is_late = False
    for action in statement.actions:
        match action:
            case statements.AddColumn(keys=keys):
                late = tuple(key for key in keys if _is_late(key, added))
                first.append(replace(action, keys=tuple(key for key in keys if key not in late)) if late else action)
                then += [statements.AddConstraint(key) for key in late]
                is_late = is_late or bool(late)
            case _:
                then.append(action)
                is_late = is_late or (
                    isinstance(action, statements.AddConstraint) and _is_late(action.constraint, added)
                )
    if not is_late or not all(isinstance(a, _FOLLOWING) for a in then) or _meet(first, then):
        return None
    return replace(statement, actions=tuple(first)), replace(statement, actions=tuple(then))


def number_first(statement: statements.AlterTable) -> tuple[statements.AlterTable, statements.AlterTable]:
    """Of a statement that leaves a table without a primary key: rows have the numbers that they are known by then
    before it is carried out."""
    return replace(statement, actions=(statements.AddRowId(),)), statement


def without_columns(first: statements.AlterTable) -> statements.AlterTable:
    """What takes the first of the two back."""
    if statements.AddRowId() in first.actions:
        return replace(first, actions=(statements.DropRowId(),))
    names = [action.column.name for action in first.actions if isinstance(action, statements.AddColumn)]
    return replace(first, actions=tuple(statements.DropColumn(name, cascade=True) for name in reversed(names)))


def adds_known_column(first: statements.AlterTable, known: Sequence[str]) -> bool:
    """Whether IF NOT EXISTS, or an error, has a say in what the statement does."""
    return any(isinstance(action, statements.AddColumn) and action.column.name in known for action in first.actions)


def _is_late(key: object, added: dict[str, statements.AddColumn]) -> bool:
    """A generated value is known to a writer that changes the row; of a primary key, all rows must have it before."""
    if not isinstance(key, statements.KeyDefinition):
        return False
    return any(name in added and (key.primary or _is_drawn(added[name].column)) for name in key.columns)


def _is_drawn(column: statements.ColumnDefinition) -> bool:
    return column.generated is None and column.up is None


def _meet(first: Sequence[statements.AlterAction], then: Sequence[statements.AlterAction]) -> bool:
    """Whether a column takes the name of another that goes only later."""
    names = {action.column.name for action in first if isinstance(action, statements.AddColumn)}
    return any(isinstance(action, statements.DropColumn) and action.name in names for action in then)
