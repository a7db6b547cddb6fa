"""The entries that an index has for many rows, by DuckDB: with the keys that are expressions, without other rows."""

from __future__ import annotations

from collections.abc import Sequence

from seachange.model.descriptor import Column, Index, Table
from seachange.model.expression import Expression
from seachange.model.types import SqlType
from seachange.storage.arrow import column_name


def select_entries(table: Table, index: Index, source: str, columns: Sequence[Column] | None = None) -> str:
    """A query for the stored columns of the index, or some of them; `source` has the columns of rows, named by id."""
    stored = [table.column_by_id[c] for c, _ in table.stored_columns(index, table.layout)]
    names = ", ".join(_output(column) for column in (stored if columns is None else columns))
    where = "" if index.where is None else f" WHERE {index.where.text}"
    return f"SELECT {names} FROM {source}{where}"  # noqa: S608 - names are made of column ids


def columns_read(table: Table, index: Index, columns: Sequence[Column]) -> list[Column]:
    """The columns of rows that these columns of the index, and the choice of rows, are made from."""
    used = [index.where, *(column.generated for column in columns if column.virtual)]
    computed = [table.column_by_id[c] for expression in used if expression is not None for c in expression.columns]
    return list(dict.fromkeys([*(c for c in columns if not c.virtual), *computed]))


def as_value(expression: Expression, type_: SqlType) -> str:
    """The expression as DuckDB text, over columns that are named after their ids."""
    return f"CAST({expression.text} AS {type_.duckdb})"


def _output(column: Column) -> str:
    if not column.virtual or column.generated is None:
        return column_name(column.id)
    return f"{as_value(column.generated, column.type)} AS {column_name(column.id)}"
