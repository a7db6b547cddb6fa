"""Expressions of a statement, bound to the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.defaults import constant_default
from seachange.model.schema.enums import quote_text, relabel, relabel_list
from seachange.model.schema.expression import Expression
from seachange.model.statements import ConstantDefault, Default, ExpressionDefinition, UserType, sequence_call
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.lookup import existing, find_type
from seachange.values.coercion import coerce
from seachange.values.types import TEXT, SqlType

_TYPED_LABEL = re.compile("\x01([^\x01\x02]*)\x02([^\x01\x02]*)\x02([^\x01]*)\x01")
# Of the text before and after a column: whether it is compared by order there.
_ORDERED_BEFORE = re.compile(r"(?:[^<]>|<|[<>]=)\s*\(*$")
_ORDERED_AFTER = re.compile(r"^\)*\s*(?:<(?!>)|>|BETWEEN\b)")


def bind_expression(draft: Draft, table_id: TableId, pieces: Sequence[str], columns: Sequence[str]) -> Expression:
    used = [draft.column(table_id, name) for name in columns]
    texts = [_TYPED_LABEL.sub(lambda found: _label(draft, found), piece) for piece in pieces]
    for position, column_id in enumerate(used):
        _refuse_ordered(draft, table_id, column_id, texts[position], texts[position + 1])
    parts = [text + (_reference(draft, table_id, c) if c is not None else "") for text, c in zip_longest(texts, used)]
    return Expression("".join(parts), tuple(dict.fromkeys(used)))


def _label(draft: Draft, found: re.Match[str]) -> str:
    name = RelationName(found[1] or None, found[2])
    entry = find_type(draft, name)
    if entry is None:
        raise errors.UndefinedObject(kind="type", name=name)
    enum_value(draft, SqlType(TEXT.kind, enum=entry.id), found[3])
    return quote_text(found[3])


def _reference(draft: Draft, table_id: TableId, column_id: ColumnId) -> str:
    """A column as an expression sees it: of an enum that means labels, as they are now."""
    reference = column_reference(column_id)
    type_ = draft.only(elements.ColumnType, table_id=table_id, column_id=column_id)
    if type_ is not None and type_.type.stored != type_.type.duckdb:
        # Rows hold such values in another form.
        return f"CAST({reference} AS {type_.type.duckdb})"
    if type_ is None or type_.type_id is None:
        return reference
    labels = [(stored, label) for label, stored in stored_values(draft, type_.type_id).items()]
    return relabel(reference, labels) if type_.type.element is None else relabel_list(reference, labels)


def _refuse_ordered(draft: Draft, table_id: TableId, column_id: ColumnId, before: str, after: str) -> None:
    """Where expressions of a table are evaluated, the order of an enum's values is not known."""
    type_ = draft.only(elements.ColumnType, table_id=table_id, column_id=column_id)
    if type_ is None or type_.type_id is None:
        return
    if _ORDERED_BEFORE.search(before) or _ORDERED_AFTER.search(after):
        name = draft.column_name(table_id, column_id)
        raise errors.FeatureNotSupported(
            feature=f"comparing enum column {name} by order in an expression of its table",
            instead="List the labels: IN (...).",
        )


def bind_generated(
    draft: Draft, table_id: TableId, column_id: ColumnId, definition: ExpressionDefinition
) -> Expression:
    """The expression of a stored generated column, which must not wait for another to be generated."""
    bound = bind_expression(draft, table_id, definition.pieces, definition.columns)
    if column_id in bound.columns:
        raise _of_generated(draft, table_id, column_id)
    check_generated(draft, table_id, bound.columns)
    return bound


def check_generated(draft: Draft, table_id: TableId, columns: Sequence[ColumnId]) -> None:
    """Of the columns that a generated one is made of none may be generated."""
    for used in columns:
        if draft.select(elements.ColumnGenerated, table_id=table_id, column_id=used):
            raise _of_generated(draft, table_id, used)


def _of_generated(draft: Draft, table_id: TableId, column_id: ColumnId) -> errors.Error:
    name = draft.column_name(table_id, column_id)
    return errors.InvalidObjectDefinition(
        detail=f'cannot use generated column "{name}" in the expression of a generated column: '
        "write its expression instead"
    )


def bind_default(draft: Draft, type_: SqlType, default: Default | None) -> tuple[str | None, tuple[DescriptorId, ...]]:
    """The text of a default, and the sequences that it draws from. None: the default is NULL."""
    match default:
        case None:
            return None, ()
        case ConstantDefault(text=text, casts=casts, read_as=read_as):
            for cast in casts:
                _check_cast(draft, type_, cast)
            given = coerce(read_as, text) if read_as is not None and text is not None else text
            return constant_default(type_, _constant(draft, type_, given)), ()
        case ExpressionDefinition():
            refuse_computed_enum(type_, "a computed default")
            return _bind_sequences(draft, default)


def _constant(draft: Draft, type_: SqlType, text: object) -> object:
    """How rows hold a constant."""
    value = coerce(type_, text)
    if not type_.enum or value is None:
        return value
    if type_.element is None:
        return enum_value(draft, type_, str(text))
    return [None if label is None else enum_value(draft, type_, label) for label in value]


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
    text = _TYPED_LABEL.sub(lambda found: _label(draft, found), "".join(default.pieces))
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
    """How rows hold the value of an enum that is called so."""
    type_id = DescriptorId(type_.enum)
    found = stored_values(draft, type_id).get(label)
    if found is None:
        raise errors.InvalidTextRepresentation(type=f"enum {draft.name_of(type_id)}", value=label)
    return found


def stored_values(draft: Draft, type_id: DescriptorId) -> dict[str, str]:
    """How rows hold the values of an enum, by label, in their order."""
    draft.load(type_id)
    labels = {label.value_id: label.label for label in draft.select(elements.EnumLabel, type_id=type_id)}
    values = sorted(draft.select(elements.EnumValue, type_id=type_id), key=lambda value: value.rank)
    return {labels[value.value_id]: value.stored for value in values}


def refuse_computed_enum(type_: SqlType, what: str) -> None:
    """Where values are computed, it is not known how rows store the resulting label."""
    if type_.enum:
        raise errors.FeatureNotSupported(feature=f"{what} of an enum column", instead="Use a label as a constant.")


def rebind(expression: Expression, old: ColumnId, new: ColumnId) -> Expression:
    """The same expression over a column that takes the place of another."""
    columns = tuple(new if column == old else column for column in expression.columns)
    return Expression(expression.text.replace(column_reference(old), column_reference(new)), columns)
