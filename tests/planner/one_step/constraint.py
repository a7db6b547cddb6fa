"""CHECK and FOREIGN KEY constraints: from their definitions to values of a descriptor, and what depends on what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from seachange import errors
from seachange.model.ids import ConstraintId, IndexId, TableId
from seachange.model.schema.constraint import Check, ForeignKey, column_reference
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.references import references_to
from seachange.model.statements.table_statements import CheckDefinition, ForeignKeyDefinition, RuleDefinition
from seachange.planner.names import choose_name
from seachange.values.types import Kind, SqlType

# Kinds whose values are the same values in each: a key of one can be looked up as a key of another.
_FAMILIES: tuple[frozenset[Kind], ...] = (
    frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT}),
    frozenset({Kind.TEXT, Kind.VARCHAR}),
)


def constraint_names(table: Table) -> set[str]:
    rules: list[Check | ForeignKey] = [*table.checks, *table.foreign_keys]
    return {rule.name for rule in rules} | {index.name for index in table.indexes}


def add_rules(table: Table, rules: Iterable[RuleDefinition], tables: Mapping[tuple[str, str], Table]) -> Table:
    """The table with these constraints; a foreign key may refer to the table itself as it is being made."""
    for rule in rules:
        if rule.name is not None and rule.name in constraint_names(table):
            raise errors.DuplicateObject(kind="constraint", name=rule.name)
        following = ConstraintId(table.next_constraint_id + 1)
        match rule:
            case CheckDefinition():
                checks = (*table.checks, _build_check(table, rule))
                table = replace(table, checks=checks, next_constraint_id=following)
            case ForeignKeyDefinition():
                keys = (*table.foreign_keys, _build_foreign_key(table, rule, tables))
                table = replace(table, foreign_keys=keys, next_constraint_id=following)
    return table


def _build_check(table: Table, rule: CheckDefinition) -> Check:
    used = [_column(table, name) for name in rule.columns]
    parts = [
        piece + (column_reference(column.id) if column else "") for piece, column in zip_longest(rule.pieces, used)
    ]
    columns = list(dict.fromkeys(used))
    named_after = [columns[0].name] if len(columns) == 1 else []
    name = rule.name or choose_name(table.name, named_after, "check", constraint_names(table))
    return Check(table.next_constraint_id, name, "".join(parts), tuple(c.id for c in columns))


def _column(table: Table, name: str) -> Column:
    column = table.column_by_name.get(name)
    if column is None:
        raise errors.UndefinedColumn(name=name, relation=table.name)
    return column


def _build_foreign_key(table: Table, rule: ForeignKeyDefinition, tables: Mapping[tuple[str, str], Table]) -> ForeignKey:
    parent = _find_parent(table, rule, tables)
    columns = [_column(table, name) for name in rule.columns]
    index, referred = _find_key(parent, rule)
    if len(columns) != len(referred):
        raise errors.InvalidForeignKey(
            detail="the number of referencing and referenced columns for a foreign key disagree"
        )
    for column, other in zip(columns, referred, strict=True):
        if not _is_comparable(column.type, other.type):
            raise errors.DatatypeMismatch(
                detail=f'key columns "{column.name}" of type {column.type} and "{other.name}" of type {other.type} '
                "are incompatible"
            )
    pairs = {other.id: column.id for column, other in zip(columns, referred, strict=True)}
    name = rule.name or choose_name(table.name, rule.columns, "fkey", constraint_names(table))
    return ForeignKey(
        id=table.next_constraint_id,
        name=name,
        columns=tuple(pairs[c] for c in index.key),
        parent=parent.id,
        parent_index=index.id,
        on_delete=rule.on_delete,
        on_update=rule.on_update,
        deferrable=rule.deferrable,
        initially_deferred=rule.initially_deferred,
    )


def _find_parent(table: Table, rule: ForeignKeyDefinition, tables: Mapping[tuple[str, str], Table]) -> Table:
    name = (rule.parent.schema or table.schema, rule.parent.name)
    if name == (table.schema, table.name):
        return table
    parent = tables.get(name)
    if parent is None:
        raise errors.UndefinedTable(name=rule.parent)
    return parent


def _find_key(parent: Table, rule: ForeignKeyDefinition) -> tuple[Index, Sequence[Column]]:
    """The unique key that the foreign key refers to, and its columns in the order in which they are referred to."""
    if not rule.parent_columns:
        columns = [parent.column_by_id[c] for c in parent.primary.key]
        if any(column.hidden for column in columns):
            raise errors.UndefinedObject(kind="primary key of referenced table", name=parent.name)
        return parent.primary, columns
    columns = [_column(parent, name) for name in rule.parent_columns]
    wanted = {column.id for column in columns}
    for index in parent.indexes:
        if index.unique and set(index.key) == wanted and len(columns) == len(wanted) == len(index.key):
            return index, columns
    raise errors.InvalidForeignKey(
        detail=f'there is no unique constraint matching given keys for referenced table "{parent.name}"'
    )


def _is_comparable(one: SqlType, other: SqlType) -> bool:
    if one.kind is other.kind:
        return one.scale == other.scale
    return any(one.kind in family and other.kind in family for family in _FAMILIES)


# What depends on what.


def new_parents(before: Table | None, after: Table) -> list[TableId]:
    """The other tables that a change of a table begins to refer to."""
    known = {key.id for key in before.foreign_keys} if before is not None else set()
    return list(dict.fromkeys(k.parent for k in after.foreign_keys if k.id not in known and k.parent != after.id))


class References:
    """Foreign keys that go with what they refer to: refused, or with CASCADE dropped."""

    def __init__(self, tables: Iterable[Table], cascade: bool, except_for: Iterable[TableId] = ()) -> None:
        self._tables = {table.id: table for table in tables}
        self._cascade = cascade
        self._except = frozenset(except_for)
        # The tables that lose foreign keys, as they are without them.
        self.changed: dict[TableId, Table] = {}

    def release_table(self, parent: Table) -> None:
        self._release(parent, {index.id for index in parent.indexes}, f"table {parent.name}")

    def release_index(self, parent: Table, index: Index, what: str) -> None:
        self._release(parent, {index.id}, what)

    def _release(self, parent: Table, indexes: set[IndexId], what: str) -> None:
        for child, key in references_to(self._tables.values(), parent):
            if child.id in self._except or key.parent_index not in indexes:
                continue
            if not self._cascade:
                raise errors.DependentObjectsExist(what=what, dependents=f"constraint {key.name} on table {child.name}")
            latest = self.changed.get(child.id, child)
            rest = tuple(k for k in latest.foreign_keys if k.id != key.id)
            self.changed[child.id] = replace(latest, version=child.version + 1, foreign_keys=rest)
