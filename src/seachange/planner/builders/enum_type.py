"""CREATE TYPE ... AS ENUM, and ADD, RENAME and DROP VALUE.

A row holds the text by which a value was first known, so that a new label or another order touches no row. Expressions
see labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.targets import Goal
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.defaults import constant_value
from seachange.model.schema.enums import quote_text
from seachange.model.schema.objects import EnumType
from seachange.model.statements import AddEnumValue, CreateEnum, DropEnumValue, RenameEnumValue
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.lookup import existing, refuse_taken
from seachange.planner.names import NAME_BYTES_MAX, choose_name


def create_enum(draft: Draft, statement: CreateEnum) -> None:
    schema = draft.schema_of(statement.name)
    refuse_taken(draft, ObjectKind.TYPE, schema, statement.name.name)
    id_ = DescriptorId(next(draft.ids))
    draft.add(elements.EnumTypeElement(id_))
    draft.add(elements.NamespaceElement(id_, ObjectKind.TYPE, draft.database, schema, statement.name.name))
    for rank, label in enumerate(statement.values, 1):
        if statement.values.count(label) > 1:
            raise errors.DuplicateObject(kind="enum label", name=label)
        _add(draft, id_, draft.take_value_id(id_), float(rank), label)


def _add(draft: Draft, type_id: DescriptorId, value_id: int, rank: float, label: str) -> None:
    _check_label(label)
    draft.add(elements.EnumValue(type_id, value_id, rank, _stored(draft, type_id, value_id, label)))
    draft.add(elements.EnumLabel(type_id, value_id, label))


def _stored(draft: Draft, type_id: DescriptorId, value_id: int, label: str) -> str:
    """How rows hold a new value: as its label, unless they hold one so that is called something else by now."""
    taken = {value.stored for value in draft.select(elements.EnumValue, type_id=type_id)}
    return label if label not in taken else f"{label} (value {value_id})"


def _check_label(label: str) -> None:
    if len(label.encode()) > NAME_BYTES_MAX:
        raise errors.InvalidName(name=label, detail=f"enum labels have at most {NAME_BYTES_MAX} bytes")


def add_enum_value(draft: Draft, statement: AddEnumValue) -> None:
    id_ = existing(draft, ObjectKind.TYPE, statement.type).id
    values = _values(draft, id_)
    if statement.value in values:
        if not statement.if_not_exists:
            raise errors.DuplicateObject(kind="enum label", name=statement.value)
        draft.notices.append(f'enum label "{statement.value}" already exists, skipping')
        return
    _add(draft, id_, draft.take_value_id(id_), _rank(values, statement), statement.value)


def _values(draft: Draft, type_id: DescriptorId) -> dict[str, elements.EnumValue]:
    """By label, in their order."""
    labels = {label.value_id: label.label for label in draft.select(elements.EnumLabel, type_id=type_id)}
    values = sorted(draft.select(elements.EnumValue, type_id=type_id), key=lambda value: value.rank)
    return {labels[value.value_id]: value for value in values}


def _value(draft: Draft, type_id: DescriptorId, label: str) -> elements.EnumValue:
    found = _values(draft, type_id).get(label)
    if found is None:
        raise errors.InvalidParameterValue(detail=f'"{label}" is not an existing enum label')
    return found


def _rank(values: dict[str, elements.EnumValue], statement: AddEnumValue) -> float:
    """Between its neighbours, none of which changes."""
    neighbour = statement.before if statement.before is not None else statement.after
    ranks = [value.rank for value in values.values()]
    if neighbour is None:
        return ranks[-1] + 1 if ranks else 1.0
    if neighbour not in values:
        raise errors.InvalidParameterValue(detail=f'"{neighbour}" is not an existing enum label')
    position = list(values).index(neighbour) + (0 if statement.before is not None else 1)
    below = ranks[position - 1] if position > 0 else ranks[0] - 2
    above = ranks[position] if position < len(ranks) else ranks[-1] + 2
    middle = (below + above) / 2
    if not below < middle < above:
        raise errors.ProgramLimitExceeded(
            detail=f'there is no room left for enum label "{statement.value}" beside "{neighbour}": '
            "add it at the end, or make a new type"
        )
    return middle


def rename_enum_value(draft: Draft, statement: RenameEnumValue) -> None:
    id_ = existing(draft, ObjectKind.TYPE, statement.type).id
    value = _value(draft, id_, statement.value)
    if statement.new_value in _values(draft, id_):
        raise errors.DuplicateObject(kind="enum label", name=statement.new_value)
    _check_label(statement.new_value)
    for what in _mentions(draft, id_, statement.value):
        raise errors.FeatureNotSupported(
            feature=f"renaming enum label {statement.value}, which {what} names,",
            instead=f"Drop {what}, and create it again after the change.",
        )
    old = elements.EnumLabel(id_, value.value_id, statement.value)
    draft.replace(old, replace(old, label=statement.new_value))


def drop_enum_value(draft: Draft, statement: DropEnumValue) -> None:
    """For the duration of the change a constraint on each column of the type keeps the value out; when no row has it,
    it can go."""
    id_ = existing(draft, ObjectKind.TYPE, statement.type).id
    value = _value(draft, id_, statement.value)
    what = f"value {statement.value} of type {draft.name_of(id_)}"
    for dependent in (*_defaults(draft, id_, value), *_mentions(draft, id_, statement.value)):
        raise errors.ValueNeeded(what=what, dependent=dependent)
    for table_id, column_id in columns_of_type(draft, id_) if _is_known(draft, id_, value) else ():
        if not draft.has_no_rows(table_id):
            _keep_out(draft, table_id, column_id, value.stored)
    draft.drop(elements.EnumLabel(id_, value.value_id, statement.value))
    draft.drop(value)


def _is_known(draft: Draft, type_id: DescriptorId, value: elements.EnumValue) -> bool:
    """Not if it comes with the same transaction, so that no row can have it."""
    before = draft.catalog.descriptors.get(type_id)
    values = before.values if isinstance(before, EnumType) else ()
    return any(known.id == value.value_id for known in values)


def _keep_out(draft: Draft, table_id: TableId, column_id: ColumnId, stored: str) -> None:
    id_ = draft.take_constraint_id(table_id)
    taken = {name.name for name in draft.select(elements.ConstraintName, table_id=table_id)}
    column = draft.column_name(table_id, column_id)
    name = choose_name(draft.name_of(table_id), [column], "unused", taken)
    held = column_reference(column_id)
    is_list = draft.column_type(table_id, column_id).type.element is not None
    text = f"(NOT list_contains({held}, {quote_text(stored)}))" if is_list else f"({held} <> {quote_text(stored)})"
    draft.add(elements.CheckConstraint(table_id, id_, text, (column_id,)), Goal.TRANSIENT)
    draft.add(elements.ConstraintName(table_id, id_, name), Goal.TRANSIENT)


def columns_of_type(draft: Draft, type_id: DescriptorId) -> list[tuple[TableId, ColumnId]]:
    draft.load_connected(type_id)
    return [(type_.table_id, type_.column_id) for type_ in draft.select(elements.ColumnType, type_id=type_id)]


def _defaults(draft: Draft, type_id: DescriptorId, value: elements.EnumValue) -> Iterator[str]:
    for table_id, column_id in columns_of_type(draft, type_id):
        type_ = draft.column_type(table_id, column_id).type
        for default in draft.select(elements.ColumnDefault, table_id=table_id, column_id=column_id):
            held = constant_value(type_, default.expression)
            if value.stored in (held if isinstance(held, list) else [held]):
                column = draft.column_name(table_id, column_id)
                yield f"the default of column {column} of table {draft.name_of(table_id)}"


def _mentions(draft: Draft, type_id: DescriptorId, label: str) -> Iterator[str]:
    """What has the label in a text, which would no longer mean the value."""
    quoted = quote_text(label)
    for table_id, column_id in columns_of_type(draft, type_id):
        place = {"table_id": table_id, "column_ids": column_id}
        table = draft.name_of(table_id)
        for check in draft.select(elements.CheckConstraint, **place):
            if quoted in check.expression:
                name = draft.only(elements.ConstraintName, table_id=table_id, constraint_id=check.constraint_id)
                yield f"constraint {name.name if name else ''} of table {table}"
        for generated in draft.select(elements.ColumnGenerated, **place):
            if quoted in generated.expression.text:
                yield f"column {draft.column_name(table_id, generated.column_id)} of table {table}"
        for index in draft.indexes(table_id):
            if isinstance(index, elements.PrimaryIndex) or column_id not in index.column_ids:
                continue
            if index.where is not None and quoted in index.where.text:
                yield f"index {draft.index_name(index).name}"
        for view in draft.select(elements.ViewQuery, column_uses=(table_id, column_id)):
            if quoted in view.query:
                yield f"view {draft.name_of(view.view_id)}"
