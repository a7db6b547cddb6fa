"""Expressions of a statement, bound to the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from seachange import errors
from seachange.model.coercion import coerce
from seachange.model.constraint import column_reference
from seachange.model.defaults import constant_default
from seachange.model.expression import Expression
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.object_statements import ObjectKind
from seachange.model.statements import Constant, Default, ExpressionDefinition
from seachange.model.types import SqlType
from seachange.planner.builders.draft import Draft


def bind_expression(draft: Draft, table_id: TableId, pieces: Sequence[str], columns: Sequence[str]) -> Expression:
    used = [draft.column(table_id, name) for name in columns]
    parts = [piece + (column_reference(c) if c is not None else "") for piece, c in zip_longest(pieces, used)]
    return Expression("".join(parts), tuple(dict.fromkeys(used)))


def bind_default(draft: Draft, type_: SqlType, default: Default | None) -> tuple[str | None, tuple[DescriptorId, ...]]:
    """The text of a default, and the sequences that it draws from. None: the default is NULL."""
    match default:
        case None:
            return None, ()
        case Constant():
            return constant_default(type_, coerce(type_, default.text)), ()
        case ExpressionDefinition():
            return "".join(default.pieces), tuple(_sequence(draft, name) for name in default.sequences)


def _sequence(draft: Draft, name: object) -> DescriptorId:
    found = draft.find(name)  # type: ignore[arg-type]
    if found is None:
        raise errors.UndefinedTable(name=name)
    if found.kind is not ObjectKind.SEQUENCE:
        raise errors.WrongObjectType(name=name, kind="sequence")
    return found.id


def rebind(expression: Expression, old: ColumnId, new: ColumnId) -> Expression:
    """The same expression over a column that takes the place of another."""
    columns = tuple(new if column == old else column for column in expression.columns)
    return Expression(expression.text.replace(column_reference(old), column_reference(new)), columns)
