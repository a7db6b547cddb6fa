"""CREATE and DROP INDEX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import ColumnId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.statements import BTREE, CreateIndex, DropIndex, ExpressionDefinition, KeyDefinition
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.drops import drop_index
from seachange.planner.builders.expression import bind_expression
from seachange.planner.builders.lookup import existing, find_object
from seachange.planner.builders.rebuild import add_index
from seachange.planner.names import choose_name
from seachange.planner.object_names import FoundObject
from seachange.values.types import TEXT

_INDEXED = frozenset({ObjectKind.MATERIALIZED_VIEW})
# What the names of functions begin with that DuckDB is given.
_OUR_FUNCTIONS = "seachange_"
_CALLS = re.compile(r"[A-Z_0-9]+(?=\()")
_IMPLIED = "the key of index {name} is unique already"


def create_index(draft: Draft, statement: CreateIndex) -> None:
    table_id = existing(draft, ObjectKind.TABLE, statement.table, _INDEXED).id
    draft.refuse_unseen_rows(table_id)
    schema = draft.schema_named(table_id)
    taken = draft.relations_in(schema)
    if statement.name is not None and statement.name in taken:
        if not statement.if_not_exists:
            raise errors.DuplicateTable(name=statement.name)
        draft.notices.append(f'relation "{statement.name}" already exists, skipping')
        return
    key = tuple(_key_column(draft, table_id, item, statement.method) for item in statement.columns)
    for column_id in key:
        if key.count(column_id) > 1:
            # An entry has each column once.
            raise errors.FeatureNotSupported(
                feature=f"an index with {draft.column_name(table_id, column_id)} twice in its key",
                instead="Name it once: the second adds nothing to the order.",
            )
    condition = statement.where
    where = None if condition is None else bind_expression(draft, table_id, condition.pieces, condition.columns)
    descending = tuple(key[position] for position in statement.descending)
    swapped = tuple(key[position] for position in statement.nulls_swapped)
    include = tuple(draft.column(table_id, name) for name in statement.include)
    labels = [*(_label(item) for item in statement.columns), *statement.include]
    name = statement.name or choose_name(draft.name_of(table_id), labels, "idx", taken)
    id_ = IndexId(next(draft.ids))
    if statement.unique:
        distinct = statement.nulls_distinct
        unique = elements.UniqueIndex(table_id, id_, key, include, descending, where, distinct, swapped)
        _note_implied(draft, unique)
        add_index(draft, unique, name, constraint=False)
    else:
        secondary = elements.SecondaryIndex(table_id, id_, key, include, descending, where, swapped)
        add_index(draft, secondary, name, constraint=False)
    if statement.method != BTREE:
        draft.notices.append(f'index "{name}" is a btree, which finds the same rows as {statement.method} would')


def _key_column(draft: Draft, table_id: TableId, item: str | ExpressionDefinition, method: str) -> ColumnId:
    """A column, or the hidden virtual column that stands for an expression: one for all indexes on the same."""
    if isinstance(item, str):
        return _as_key(draft, table_id, draft.column(table_id, item), method)
    expression = bind_expression(draft, table_id, item.pieces, item.columns)
    for known in draft.select(elements.ColumnGenerated, table_id=table_id):
        if known.virtual and known.expression == expression:
            return known.column_id
    column_id = draft.take_column_id(table_id)
    draft.add(elements.ColumnElement(table_id, column_id, hidden=True))
    draft.add(elements.ColumnName(table_id, column_id, _display(draft, table_id, item, column_id)))
    # Of which type its values are is for DuckDB to say, before anything is published.
    draft.add(elements.ColumnType(table_id, column_id, TEXT))
    draft.add(elements.ColumnGenerated(table_id, column_id, expression, virtual=True))
    return column_id


def _display(draft: Draft, table_id: TableId, item: ExpressionDefinition, column_id: ColumnId) -> str:
    """What to call the expression in messages: its text over the names of columns, if no column is called so."""
    text = "".join(piece + (name or "") for piece, name in zip_longest(item.pieces, item.columns))
    # Its own pair of parentheses is for the text to stand anywhere.
    text = _CALLS.sub(lambda call: call[0].lower(), text.removeprefix("(").removesuffix(")"))
    is_taken = draft.select(elements.ColumnName, table_id=table_id, folded=text.lower())
    return f"{text} {column_id}" if is_taken else text


def _label(item: str | ExpressionDefinition) -> str:
    """As PostgreSQL names an index after a key: the column, the function that is called, or just an expression."""
    if isinstance(item, str):
        return item
    call = item.pieces[0].strip("( ").lower().removeprefix(_OUR_FUNCTIONS)
    return call if call.isidentifier() else "expr"


def _note_implied(draft: Draft, index: elements.UniqueIndex) -> None:
    """A key that contains a unique key is unique; NULLs would be an exception."""
    known: list[elements.PrimaryIndex | elements.UniqueIndex] = [draft.primary(index.table_id)]
    for column in index.key:
        known += draft.select(elements.UniqueIndex, table_id=index.table_id, column_ids=column)
    for other in known:
        contained = other not in draft.targets and set(other.key) <= set(index.key)
        if contained and _is_never_null(draft, index.table_id, other.key):
            if isinstance(other, elements.UniqueIndex) and other.where is not None:
                continue
            draft.implied[index] = _IMPLIED.format(name=draft.index_name(other).name)
            return


def _is_never_null(draft: Draft, table_id: TableId, columns: Sequence[ColumnId]) -> bool:
    return all(draft.select(elements.ColumnNotNull, table_id=table_id, column_id=column) for column in columns)


def build_key(draft: Draft, table_id: TableId, definition: KeyDefinition) -> elements.UniqueIndex:
    """The index of a UNIQUE constraint, added to the draft."""
    key = key_columns(draft, table_id, definition.columns)
    unique = elements.UniqueIndex(table_id, IndexId(next(draft.ids)), key, nulls_distinct=definition.nulls_distinct)
    _note_implied(draft, unique)
    add_index(draft, unique, name_key(draft, table_id, definition, "key"), constraint=True)
    return unique


def key_columns(draft: Draft, table_id: TableId, names: Sequence[str]) -> tuple[ColumnId, ...]:
    for name in names:
        if names.count(name) > 1:
            raise errors.DuplicateColumn(name=name)
    return tuple(_as_key(draft, table_id, draft.column(table_id, name)) for name in names)


def _as_key(draft: Draft, table_id: TableId, column_id: ColumnId, method: str = BTREE) -> ColumnId:
    type_ = draft.column_type(table_id, column_id).type
    if not type_.is_key and method != BTREE:
        raise errors.FeatureNotSupported(
            feature=f"an index by {method} on column {draft.column_name(table_id, column_id)} of type {type_}",
            instead="Leave it out, or index by a btree an expression over the column, of what is looked for.",
        )
    if not type_.is_key:
        raise errors.FeatureNotSupported(
            feature=f"a key or index on column {draft.column_name(table_id, column_id)} of type {type_}",
            instead="Index an expression over it, of a type that can be looked up.",
        )
    return column_id


def name_key(draft: Draft, table_id: TableId, definition: KeyDefinition, label: str) -> str:
    taken = draft.relations_in(draft.schema_named(table_id))
    if definition.name is not None and definition.name in taken:
        raise errors.DuplicateTable(name=definition.name)
    columns = () if label == "pkey" else definition.columns
    return definition.name or choose_name(draft.name_of(table_id), columns, label, taken)


def drop_indexes(draft: Draft, statement: DropIndex) -> None:
    for name in dict.fromkeys(statement.indexes):
        found = _find_index(draft, name, statement.if_exists)
        if found is None:
            continue
        index = next(i for i in draft.indexes(found.id) if i.index_id == found.index_id)
        constraint = draft.select(elements.KeyConstraint, table_id=found.id, index_id=index.index_id)
        if isinstance(index, elements.PrimaryIndex) or constraint:
            owner = f"constraint {name.name} on table {draft.name_of(found.id)}"
            raise errors.RequiredObject(what=f"index {name}", owner=owner)
        drop_index(draft, index, statement.cascade, f"index {name}")


def _find_index(draft: Draft, name: RelationName, if_exists: bool) -> FoundObject | None:
    try:
        return find_object(draft, ObjectKind.INDEX, name, if_exists)
    except errors.UndefinedTable:
        # DROP INDEX has a code of its own for it.
        raise errors.UndefinedObject(kind="index", name=name) from None
