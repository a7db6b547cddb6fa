"""Expressions of a statement, bound to the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from seachange import errors
from seachange.model import elements
from seachange.model.coercion import coerce
from seachange.model.constraint import column_reference
from seachange.model.defaults import constant_default
from seachange.model.expression import Expression
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.object_statements import ObjectKind
from seachange.model.statements import Constant, Default, ExpressionDefinition, UserType, sequence_call
from seachange.model.types import SqlType
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.lookup import existing, find_type


def bind_expression(draft: Draft, table_id: TableId, pieces: Sequence[str], columns: Sequence[str]) -> Expression:
    used = [draft.column(table_id, name) for name in columns]
    parts = [piece + (column_reference(c) if c is not None else "") for piece, c in zip_longest(pieces, used)]
    return Expression("".join(parts), tuple(dict.fromkeys(used)))


def bind_generated(
    draft: Draft, table_id: TableId, column_id: ColumnId, definition: ExpressionDefinition
) -> Expression:
    """The expression of a stored generated column, which must not wait for another to be generated."""
    bound = bind_expression(draft, table_id, definition.pieces, definition.columns)
    for used in bound.columns:
        if used == column_id or draft.select(elements.ColumnGenerated, table_id=table_id, column_id=used):
            name = draft.column_name(table_id, used)
            raise errors.InvalidObjectDefinition(
                detail=f'cannot use generated column "{name}" in the expression of a generated column: '
                "write its expression instead"
            )
    return bound


def bind_default(draft: Draft, type_: SqlType, default: Default | None) -> tuple[str | None, tuple[DescriptorId, ...]]:
    """The text of a default, and the sequences that it draws from. None: the default is NULL."""
    match default:
        case None:
            return None, ()
        case Constant(text=text, casts=casts):
            for cast in casts:
                _check_cast(draft, type_, cast)
            is_label = type_.enum and text is not None
            value = enum_value(draft, type_, str(text)) if is_label else coerce(type_, text)
            return constant_default(type_, value), ()
        case ExpressionDefinition():
            return _bind_sequences(draft, default)


def _check_cast(draft: Draft, type_: SqlType, cast: UserType) -> None:
    found = find_type(draft, cast.name)
    if found is None:
        raise errors.UndefinedObject(kind="type", name=cast.name)
    if found.id != type_.enum:
        raise errors.FeatureNotSupported(
            feature=f"a default with a cast to type {cast.name}, which is not the column's,",
            instead="Leave the cast out.",
        )


def _bind_sequences(draft: Draft, default: ExpressionDefinition) -> tuple[str, tuple[DescriptorId, ...]]:
    text = "".join(default.pieces)
    ids = []
    for name in default.sequences:
        found = existing(draft, ObjectKind.SEQUENCE, name)
        text = text.replace(sequence_call(name), draw_from(found.id))
        ids.append(found.id)
    return text, tuple(dict.fromkeys(ids))


def draw_from(sequence_id: DescriptorId) -> str:
    """How a bound text draws from a sequence, whatever its name is or will be."""
    return f"nextval({sequence_id})"


def enum_value(draft: Draft, type_: SqlType, label: str) -> str:
    """How rows hold the value of an enum: as the text of its id."""
    type_id = DescriptorId(type_.enum)
    draft.load(type_id)
    for found in draft.select(elements.EnumLabel, type_id=type_id):
        if found.label == label:
            return str(found.value_id)
    raise errors.InvalidTextRepresentation(type=f"enum {draft.name_of(type_id)}", value=label)


def rebind(expression: Expression, old: ColumnId, new: ColumnId) -> Expression:
    """The same expression over a column that takes the place of another."""
    columns = tuple(new if column == old else column for column in expression.columns)
    return Expression(expression.text.replace(column_reference(old), column_reference(new)), columns)
