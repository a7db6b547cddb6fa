"""The rules that the rows of a table must meet, by column name: what writers need to generate valid rows, now and after
the migrations to come.

Before a migration adds a constraint, an application writes only rows that will meet it; otherwise the migration fails,
as it would anywhere. `foresee` gives writers that knowledge: from a rehearsal of the history without writers, it
collects for every table the rules of all its later versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seachange.model.ids import ColumnId, TableId
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.descriptor import Table
from seachange.values.types import SqlType


@dataclass(frozen=True, slots=True)
class CheckRule:
    """A CHECK: DuckDB text over columns named by id, and the columns' names by those (`c7`)."""

    expression: str
    names: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Parent:
    """A foreign key: values of `columns` are those of `keys` in a row of `table` (schema.name)."""

    columns: tuple[str, ...]
    table: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """The type of a column, with the labels of an enum."""

    column: str
    type: SqlType
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowRules:
    """`distinct` are the columns of unique keys, `keys` those keys."""

    required: frozenset[str] = frozenset()
    distinct: frozenset[str] = frozenset()
    keys: frozenset[frozenset[str]] = frozenset()
    rules: frozenset[CheckRule] = frozenset()
    parents: frozenset[Parent] = frozenset()
    forms: frozenset[ColumnForm] = frozenset()

    def and_also(self, other: RowRules) -> RowRules:
        return RowRules(
            self.required | other.required,
            self.distinct | other.distinct,
            self.keys | other.keys,
            self.rules | other.rules,
            self.parents | other.parents,
            self.forms | other.forms,
        )


@dataclass(frozen=True, slots=True)
class SchemaShape:
    """The tables of a database at one point in time."""

    tables: tuple[Table, ...]
    labels: tuple[tuple[int, tuple[str, ...]], ...] = ()

    @property
    def by_id(self) -> dict[TableId, Table]:
        return {table.id: table for table in self.tables}


Foresight = Mapping[str, RowRules]


def label(table: Table) -> str:
    return f"{table.schema}.{table.name}"


def demand_of(table: Table, shape: SchemaShape) -> RowRules:
    """The rules of a version of a table."""
    return _demand(table, shape, table, shape)


def foresee(shapes: Sequence[SchemaShape]) -> Foresight:
    """The rules of all later shapes for the rows of each table, under every name that it had until then."""
    versions: dict[TableId, list[tuple[Table, SchemaShape]]] = {}
    for shape in shapes:
        for table in shape.tables:
            known = versions.setdefault(table.id, [])
            if not known or known[-1][0] != table:
                known.append((table, shape))
    foreseen: dict[str, RowRules] = {}
    for known in versions.values():
        for number, (now, around) in enumerate(known):
            name = label(now)
            for later, later_shape in known[number:]:
                found = _demand(later, later_shape, now, around)
                foreseen[name] = foreseen.get(name, RowRules()).and_also(found)
    return foreseen


def dropped(before: SchemaShape, after: SchemaShape) -> tuple[str, ...]:
    """The tables that were dropped."""
    left = after.by_id
    return tuple(label(table) for table in before.tables if table.id not in left)


def _demand(table: Table, shape: SchemaShape, now: Table, around: SchemaShape) -> RowRules:
    """The rules of `table`, in the names of `now`, an earlier version of it; other tables have the names that they have
    in `around`. Parts without a name there are left out."""
    names = {column.id: column.name for column in now.visible_columns}
    labels = dict(shape.labels)
    unique = [index for index in table.indexes if index.unique or index.id == table.primary.id]
    return RowRules(
        required=_named(names, (c.id for c in table.visible_columns if not c.nullable)),
        distinct=_named(names, (source for index in unique for c in index.key for source in _sources(table, c))),
        keys=frozenset(
            frozenset(names[c] for c in index.key) for index in unique if all(c in names for c in index.key)
        ),
        rules=frozenset(
            CheckRule(check.expression, tuple((column_reference(c).strip('"'), names[c]) for c in check.columns))
            for check in table.checks
            if all(c in names for c in check.columns)
        ),
        parents=frozenset(_parents(table, names, around)),
        forms=frozenset(
            ColumnForm(names[c.id], c.type, labels.get(c.type.enum, ())) for c in table.visible_columns if c.id in names
        ),
    )


def _sources(table: Table, column_id: ColumnId) -> tuple[ColumnId, ...]:
    """The columns that a generated column depends on, or the column itself."""
    generated = table.column_by_id[column_id].generated
    return generated.columns if generated is not None else (column_id,)


def _named(names: Mapping[ColumnId, str], columns: Iterable[ColumnId]) -> frozenset[str]:
    return frozenset(names[c] for c in columns if c in names)


def _parents(table: Table, names: Mapping[ColumnId, str], around: SchemaShape) -> Iterable[Parent]:
    known = around.by_id
    for key in table.foreign_keys:
        parent = known.get(key.parent)
        if parent is None or not all(c in names for c in key.columns):
            continue
        index = parent.index_by_id.get(key.parent_index)
        visible = {column.id: column.name for column in parent.visible_columns}
        if index is not None and all(c in visible for c in index.key):
            columns = tuple(names[c] for c in key.columns)
            yield Parent(columns, label(parent), tuple(visible[c] for c in index.key))
