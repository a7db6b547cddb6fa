"""Materialized views: the columns of a new one, and the rows of its query.

A refresh gives every index of the view an empty successor and inserts the rows of the query, in one transaction: others
read the rows of before until it commits, with CONCURRENTLY or without.
"""

from __future__ import annotations

from dataclasses import replace

from seachange import errors
from seachange.model import statements
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import view_of
from seachange.sql.change.query_columns import result_columns
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result
from seachange.sql.query.query import bind_query
from seachange.sql.query.result_columns import result_names
from seachange.sql.query.views import bind_rows
from seachange.sql.text.tokens import split_script
from seachange.sql.text.tree import parse_tree
from seachange.sql.write.dml import compile_select
from seachange.sql.write.insert_select import insert_query


def define_columns(
    statement: statements.DdlStatement, port: TransactionPort, duck: DuckSession
) -> statements.DdlStatement:
    """The statement with the columns that the result of its query has."""
    if not isinstance(statement, statements.CreateMaterializedView) or statement.columns:
        return statement
    if is_skipped(statement, port):
        return statement
    (raw,) = split_script(statement.view.query)
    template = compile_select(parse_tree(raw), port)
    with port.rights.describing():
        names, types = duck.describe(bind_query(template, port, ()))
    return replace(
        statement, columns=result_columns(template, result_names(template, names), types, statement.view.columns)
    )


def is_skipped(statement: statements.DdlStatement, port: TransactionPort) -> bool:
    """Whether there is a relation of its name, and may be."""
    if not isinstance(statement, statements.CreateMaterializedView) or not statement.if_not_exists:
        return False
    name = statement.view.name
    try:
        port.names.relation(name.schema or port.schema.current_schema, name.name)
    except errors.UndefinedTable:
        return False
    return True


def fill_view(
    statement: statements.CreateMaterializedView | statements.RefreshView,
    result: Result,
    port: TransactionPort,
    duck: DuckSession,
) -> Result:
    """Inserts the rows of the query into the view, which is empty."""
    if not statement.with_data:
        return result
    name = statement.name if isinstance(statement, statements.RefreshView) else statement.view.name
    table = port.names.relation(name.schema or None, name.name)
    view = view_of(table) if isinstance(table, Table) else None
    if not isinstance(table, Table) or view is None:
        raise errors.WrongObjectType(name=name, kind="materialized view")
    with port.rights.acting_as(port.rights.access_of(table).owner):
        query = bind_rows(view, port)
        _, types = duck.describe(query)
        count = insert_query(query, table, types, port, duck).count
    return Result(f"SELECT {count}") if isinstance(statement, statements.CreateMaterializedView) else result
