"""FOREIGN KEY constraints."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.targets import Goal, Status
from seachange.model.ids import ColumnId, TableId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.temporary import is_temporary
from seachange.model.statements import ForeignKeyDefinition
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.expression import rebind
from seachange.planner.builders.rebuild import move_constraint
from seachange.planner.names import choose_name
from seachange.values.types import INTEGERS, Kind, SqlType

# Kinds whose values are the same values in each: a key of one can be looked up as a key of another.
_FAMILIES: tuple[frozenset[Kind], ...] = (
    INTEGERS,
    frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME}),
)


# Types whose values PostgreSQL compares with one another; keys are compared by their bytes.
_COMPARED: tuple[frozenset[Kind], ...] = (
    INTEGERS | {Kind.NUMERIC, Kind.REAL, Kind.DOUBLE},
    frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}),
)


def add_foreign_key(draft: Draft, table_id: TableId, rule: ForeignKeyDefinition, taken: Container[str]) -> None:
    parent_id = draft.table(rule.parent)
    if is_temporary(draft.schema_named(parent_id)) is not is_temporary(draft.schema_named(table_id)):
        detail = "temporary tables refer only to temporary tables, and others not to them"
        raise errors.InvalidTableDefinition(name=draft.name_of(table_id), detail=detail)
    columns = [draft.column(table_id, name) for name in rule.columns]
    index, referred = _find_key(draft, parent_id, rule)
    if len(columns) != len(referred):
        raise errors.InvalidForeignKey(
            detail="the number of referencing and referenced columns for a foreign key disagree"
        )
    for column, other in zip(columns, referred, strict=True):
        check_comparable(draft, (table_id, column), (parent_id, other))
    pairs = dict(zip(referred, columns, strict=True))
    id_ = draft.take_constraint_id(table_id)
    goal = Goal.ENFORCED if rule.not_valid else Goal.PUBLIC
    key = elements.ForeignKeyElement(
        table_id,
        id_,
        tuple(pairs[c] for c in index.key),
        parent_id,
        index.index_id,
        rule.on_delete,
        rule.on_update,
        rule.deferrable,
        rule.initially_deferred,
        rule.match_full,
        rule.not_valid,
    )
    # With MATCH FULL a NULL beside other values says something.
    if not rule.match_full and _reads_as_null(draft, table_id, columns):
        draft.implied[key] = "rows without the column read as NULL"
    elif goal is Goal.PUBLIC:
        refuse_unseen_key(draft, table_id, index)
    draft.add(key, goal)
    draft.add(
        elements.ConstraintName(
            table_id, id_, rule.name or choose_name(draft.name_of(table_id), rule.columns, "fkey", taken)
        )
    )
    draft.add(elements.ForeignKeyParent(parent_id, table_id, id_), goal)


def _reads_as_null(draft: Draft, table_id: TableId, columns: Sequence[ColumnId]) -> bool:
    """Whether no row can have a value of one of the columns before the change is published."""
    if draft.is_new(table_id):
        return False
    rebuilt = draft.primary(table_id).rebuilt_ids
    found = [
        draft.column_element(table_id, id_)
        for id_ in columns
        # A writer stores its default in a row while the column is hidden.
        if id_ not in rebuilt and not draft.select(elements.ColumnDefault, table_id=table_id, column_id=id_)
    ]
    return any(isinstance(c, elements.ColumnElement) and c in draft.targets and c.frozen is None for c in found)


def refuse_unseen_key(draft: Draft, table_id: TableId, key: elements.AnyIndex) -> None:
    """Rows cannot be checked, before all is published, against what comes into being only then."""
    emptied = key.table_id in draft.emptied and key in draft.targets
    unseen = draft.is_new(key.table_id) or key.built or emptied
    if unseen and not draft.has_no_rows(table_id):
        child, parent = draft.name_of(table_id), draft.name_of(key.table_id)
        raise errors.FeatureNotSupported(
            feature=f'a foreign key of table "{child}", which has rows, to "{parent}" of the same transaction',
            instead=f'Commit first what makes "{parent}", or add the foreign key as NOT VALID and validate it later.',
        )


def _find_key(draft: Draft, parent_id: TableId, rule: ForeignKeyDefinition) -> tuple[elements.AnyIndex, list[ColumnId]]:
    """The unique key that the foreign key refers to, and its columns in the order in which they are referred to."""
    primary = draft.primary(parent_id)
    if not rule.parent_columns:
        hidden = [draft.column_element(parent_id, c) for c in primary.key]
        if any(isinstance(column, elements.ColumnElement) and column.hidden for column in hidden):
            raise errors.UndefinedObject(kind="primary key of referenced table", name=draft.name_of(parent_id))
        return primary, list(primary.key)
    columns = [draft.column(parent_id, name) for name in rule.parent_columns]
    keys: list[elements.PrimaryIndex | elements.UniqueIndex] = [primary]
    keys += draft.select(elements.UniqueIndex, table_id=parent_id)
    for index in keys:
        whole = isinstance(index, elements.PrimaryIndex) or index.where is None
        if whole and sorted(index.key) == sorted(columns):
            return index, columns
    raise errors.InvalidForeignKey(
        detail=f'there is no unique constraint matching given keys for referenced table "{draft.name_of(parent_id)}"'
    )


_Column = tuple[TableId, ColumnId]


def check_comparable(draft: Draft, child: _Column, parent: _Column) -> None:
    one, other = [draft.column_type(*column).type for column in (child, parent)]
    if not _is_comparable(one, other):
        names = [draft.column_name(*column) for column in (child, parent)]
        if any(one.kind in family and other.kind in family for family in _COMPARED):
            raise errors.FeatureNotSupported(
                feature=f'a foreign key between column "{names[0]}" of type {one} and "{names[1]}" of type {other}',
                instead="Give both columns the same type.",
            )
        raise errors.DatatypeMismatch(
            detail=f'key columns "{names[0]}" of type {one} and "{names[1]}" of type {other} are incompatible'
        )


def _is_comparable(one: SqlType, other: SqlType) -> bool:
    if one.kind is other.kind:
        same_scale = one.kind is not Kind.NUMERIC or one.digits[1] == other.digits[1]
        return same_scale and one.enum == other.enum and one.element == other.element
    return any(one.kind in family and other.kind in family for family in _FAMILIES)


def renew_foreign_key(draft: Draft, key: elements.ForeignKeyElement, columns: tuple[ColumnId, ...]) -> None:
    """Another foreign key in the place of one, under its name: what the old one has shown says nothing of it."""
    id_ = draft.take_constraint_id(key.table_id)
    goal = move_constraint(draft, key, replace(key, constraint_id=id_, column_ids=columns))
    draft.drop(elements.ForeignKeyParent(key.parent_id, key.table_id, key.constraint_id))
    draft.add(elements.ForeignKeyParent(key.parent_id, key.table_id, id_), goal)


def settle_references(draft: Draft, table_id: TableId) -> None:
    """At the end of a statement that may have changed types, of one end of a foreign key or of both."""
    keys = [
        *draft.select(elements.ForeignKeyElement, table_id=table_id),
        *draft.select(elements.ForeignKeyElement, parent_id=table_id),
    ]
    for key in dict.fromkeys(keys):
        parent = draft.index_by_id(key.parent_id, key.parent_index_id)
        for own, other in zip(key.column_ids, parent.key, strict=True):
            check_comparable(draft, (key.table_id, own), (key.parent_id, other))
        if key not in draft.targets or key in draft.implied:
            continue
        reason = _why_still_valid(draft, key, parent)
        if reason is not None:
            draft.implied[key] = reason
            draft.repointed.add(key.table_id)


def _why_still_valid(draft: Draft, key: elements.ForeignKeyElement, parent: elements.AnyIndex) -> str | None:
    """Why a foreign key that has taken the place of a valid one needs no proof."""
    if draft.goal(key) is not Goal.PUBLIC or _valid_before(draft, key, parent) is None:
        return None
    if draft.has_no_rows(key.parent_id):
        return "nothing refers to a table without rows"
    pairs = zip(key.column_ids, parent.key, strict=True)
    if all(_is_alike(draft, (key.table_id, own), (key.parent_id, other)) for own, other in pairs):
        return "both ends are converted alike"
    return None


def _valid_before(
    draft: Draft, key: elements.ForeignKeyElement, parent: elements.AnyIndex
) -> elements.ForeignKeyElement | None:
    """The foreign key that goes, and said of the old columns what this one says of the new."""
    referred = [_column_before(draft, key.parent_id, column) for column in parent.key]
    columns = tuple(_column_before(draft, key.table_id, column) for column in key.column_ids)
    for target in draft.targets.values():
        old = target.element
        if not isinstance(old, elements.ForeignKeyElement) or target.adds or target.start is not Status.PUBLIC:
            continue
        if (old.table_id, old.column_ids, old.parent_id) == (key.table_id, columns, key.parent_id):
            table = draft.catalog.descriptors[old.parent_id]
            assert isinstance(table, Table)
            if list(table.index_by_id[old.parent_index_id].key) == referred:
                return old
    return None


def _column_before(draft: Draft, table_id: TableId, column_id: ColumnId) -> ColumnId:
    found = draft.column_element(table_id, column_id)
    return column_id if found.in_place_of is None else found.in_place_of


def _is_alike(draft: Draft, child: _Column, parent: _Column) -> bool:
    """Whether values of the two columns that were equal are so again."""
    one, other = (draft.column_element(*column) for column in (child, parent))
    if not isinstance(one, elements.ConvertedColumn) or not isinstance(other, elements.ConvertedColumn):
        return one not in draft.targets and other not in draft.targets
    assert one.in_place_of is not None
    assert other.in_place_of is not None
    if one.conversion.columns != (one.in_place_of,):
        return False
    types = {draft.column_type(*column).type for column in (child, parent)}
    return len(types) == 1 and rebind(one.conversion, one.in_place_of, other.in_place_of) == other.conversion


def keys_on(draft: Draft, table_id: TableId, columns: Sequence[ColumnId]) -> list[elements.ForeignKeyElement]:
    found = [draft.select(elements.ForeignKeyElement, table_id=table_id, column_ids=column) for column in columns]
    return list(dict.fromkeys(key for keys in found for key in keys))
