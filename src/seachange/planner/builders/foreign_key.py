"""FOREIGN KEY constraints."""

from __future__ import annotations

from collections.abc import Container, Sequence

from seachange import errors
from seachange.model import elements
from seachange.model.ids import ColumnId, TableId
from seachange.model.statements import ForeignKeyDefinition
from seachange.model.targets import Goal
from seachange.model.temporary import is_temporary
from seachange.model.types import Kind, SqlType
from seachange.planner.builders.draft import Draft
from seachange.planner.names import choose_name

# Kinds whose values are the same values in each: a key of one can be looked up as a key of another.
_FAMILIES: tuple[frozenset[Kind], ...] = (
    frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT}),
    frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME}),
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
        check_comparable(draft, (table_id, column, None), (parent_id, other, None))
    pairs = dict(zip(referred, columns, strict=True))
    id_ = draft.take_constraint_id(table_id)
    goal = Goal.ENFORCED if rule.not_valid else Goal.PUBLIC
    key = elements.ForeignKey(
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
        # Whoever writes a row while the column is hidden stores its default.
        if id_ not in rebuilt and not draft.select(elements.ColumnDefault, table_id=table_id, column_id=id_)
    ]
    return any(isinstance(c, elements.Column) and c in draft.targets and c.frozen is None for c in found)


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
        if any(isinstance(column, elements.Column) and column.hidden for column in hidden):
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


# A column of a table, and its type if that is to be another than it is.
_Typed = tuple[TableId, ColumnId, SqlType | None]


def check_comparable(draft: Draft, child: _Typed, parent: _Typed) -> None:
    one, other = [type_ or draft.column_type(table, column).type for table, column, type_ in (child, parent)]
    if not _is_comparable(one, other):
        names = [draft.column_name(table, column) for table, column, _ in (child, parent)]
        raise errors.DatatypeMismatch(
            detail=f'key columns "{names[0]}" of type {one} and "{names[1]}" of type {other} are incompatible'
        )


def _is_comparable(one: SqlType, other: SqlType) -> bool:
    if one.kind is other.kind:
        same_scale = one.kind is not Kind.NUMERIC or one.digits[1] == other.digits[1]
        return same_scale and one.enum == other.enum and one.element == other.element
    return any(one.kind in family and other.kind in family for family in _FAMILIES)


def keys_on(draft: Draft, table_id: TableId, columns: Sequence[ColumnId]) -> list[elements.ForeignKey]:
    found = [draft.select(elements.ForeignKey, table_id=table_id, column_ids=column) for column in columns]
    return list(dict.fromkeys(key for keys in found for key in keys))
