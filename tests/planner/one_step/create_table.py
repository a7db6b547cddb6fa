"""The first version of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seachange import errors
from seachange.model.ids import ColumnId, IndexId, LayoutId, TableId
from seachange.model.schema.defaults import constant_default
from seachange.model.schema.descriptor import Column, Index, Layout, Table
from seachange.model.statements.table_statements import (
    ColumnDefinition,
    CreateTable,
    ExpressionDefinition,
    KeyDefinition,
)
from seachange.planner.names import choose_name
from seachange.values.coercion import coerce
from seachange.values.types import BIGINT, SqlType

# The primary key of a table for which none was declared.
HIDDEN_KEY = "rowid"


def build_table(statement: CreateTable, schema: str, taken: set[str], ids: Iterator[int]) -> Table:
    name = statement.table.name
    check_column_names([c.name for c in statement.columns])
    columns = [build_column(ColumnId(i), d) for i, d in enumerate(statement.columns, start=1)]
    if not columns:
        raise errors.FeatureNotSupported(feature="a table without columns", instead="")
    table_id = TableId(next(ids))
    taken = taken | {name}
    if statement.primary_key is None:
        columns.append(_hidden_key(columns))
        key = KeyDefinition((columns[-1].name,))
    else:
        key = statement.primary_key
    primary = build_index(key, name, columns, "pkey", taken, ids)
    secondary = [build_index(u, name, columns, "key", taken, ids) for u in statement.unique]
    return Table(
        id=table_id,
        version=1,
        schema=schema,
        name=name,
        columns=tuple(columns),
        primary=primary,
        secondary=tuple(secondary),
        layouts=(Layout(LayoutId(1), tuple((c.id, c.type) for c in columns)),),
        next_column_id=ColumnId(len(columns) + 1),
    )


def check_column_names(names: Sequence[str]) -> None:
    """Names are told apart without regard to case, since that is how DuckDB reads them."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.lower())
        if other == name:
            raise errors.DuplicateColumn(name=name)
        if other is not None:
            raise errors.FeatureNotSupported(
                feature=f'columns "{other}" and "{name}", which differ only in case,', instead=""
            )
        seen[name.lower()] = name


def build_column(column_id: ColumnId, definition: ColumnDefinition) -> Column:
    assert isinstance(definition.type, SqlType)
    assert not isinstance(definition.default, ExpressionDefinition)
    default = definition.default.text if definition.default is not None else None
    value = coerce(definition.type, default)
    return Column(
        id=column_id,
        name=definition.name,
        type=definition.type,
        nullable=definition.nullable,
        default=constant_default(definition.type, value),
    )


def _hidden_key(columns: Sequence[Column]) -> Column:
    taken = {c.name.lower() for c in columns}
    name = next(n for n in (HIDDEN_KEY, *(f"{HIDDEN_KEY}{i}" for i in range(len(taken)))) if n not in taken)
    return Column(ColumnId(len(columns) + 1), name, BIGINT, nullable=False, hidden=True)


def build_index(
    key: KeyDefinition,
    table: str,
    columns: Sequence[Column],
    label: str,
    taken: set[str],
    ids: Iterator[int],
) -> Index:
    by_name = {c.name: c for c in columns}
    for name in key.columns:
        if name not in by_name:
            raise errors.UndefinedColumn(name=name, relation=table)
        if key.columns.count(name) > 1:
            raise errors.DuplicateColumn(name=name)
    if key.name is not None and key.name in taken:
        raise errors.DuplicateTable(name=key.name)
    named_after = () if label == "pkey" else key.columns
    index_name = key.name or choose_name(table, named_after, label, taken)
    taken.add(index_name)
    return Index(
        id=IndexId(next(ids)),
        name=index_name,
        key=tuple(by_name[c].id for c in key.columns),
        unique=True,
        nulls_distinct=key.nulls_distinct,
        constraint=True,
    )
