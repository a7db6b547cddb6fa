"""Types of index expressions and predicates: DuckDB checks them when the index is created."""

from __future__ import annotations

from dataclasses import replace

from seachange import errors
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.expression import Expression
from seachange.sql.change.local_times import refuse_local_times
from seachange.sql.ddl.expression import INDEX, PREDICATE, Use
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.values.types import from_duckdb


def resolve_index_types(before: Table | None, after: Table, duck: DuckSession) -> Table:
    """The new version of a table, with the types of its new virtual columns."""
    known = {column.id for column in before.columns} if before is not None else set()
    if before is not None:
        _refuse_retyping(before, after)
    columns = tuple(_resolved(c, after, duck) if c.virtual and c.id not in known else c for c in after.columns)
    for index in after.secondary:
        if index.where is None or (before is not None and index.id in before.index_by_id):
            continue
        found = _type_of(index.where, after, duck, PREDICATE)
        if found != "BOOLEAN":
            raise errors.DatatypeMismatch(detail=f"argument of WHERE must be type boolean, not type {found.lower()}")
    return after if columns == after.columns else replace(after, columns=columns)


def _refuse_retyping(before: Table, after: Table) -> None:
    """Rejects a change of a column's type that would change the values which an index has computed from the column."""
    for index in after.secondary:
        if index.id not in before.index_by_id:
            continue
        computed = [index.where, *(after.column_by_id[c].generated for c in index.key)]
        for column_id in [c for expression in computed if expression is not None for c in expression.columns]:
            if before.column_by_id[column_id].type != after.column_by_id[column_id].type:
                name = after.column_by_id[column_id].name
                raise errors.FeatureNotSupported(
                    feature=f"changing the type of column {name}, which index {index.name} computes with,",
                    instead="Drop the index first.",
                )


def _resolved(column: Column, table: Table, duck: DuckSession) -> Column:
    assert column.generated is not None
    found = _type_of(column.generated, table, duck, INDEX)
    type_ = from_duckdb(found)
    if type_ is None or not type_.is_key:
        raise errors.FeatureNotSupported(
            feature=f"an index on {column.name}, which is of type {found.lower()},", instead="Add a cast."
        )
    return replace(column, type=type_)


def _type_of(expression: Expression, table: Table, duck: DuckSession, use: Use) -> str:
    refuse_local_times(expression, table, duck, use)
    used = [table.column_by_id[c] for c in expression.columns]
    nulls = ", ".join(f"CAST(NULL AS {c.type.duckdb}) AS {column_reference(c.id)}" for c in used) or "1"
    sql = f"SELECT {expression.text} FROM (SELECT {nulls}) WHERE false"  # noqa: S608 - columns are named by id
    (found,) = duck.rows(DuckQuery(sql, {}, {})).types
    return found
