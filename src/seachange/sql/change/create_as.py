"""CREATE TABLE AS: a table with the columns of a query's result, and its rows, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.model.statements import ColumnDefinition, CreateTable, CreateTableAs
from seachange.sql.change.schema_change import run_ddl
from seachange.sql.compile.target import DmlTarget
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result
from seachange.sql.query.query import bind_query
from seachange.sql.query.result_columns import result_names
from seachange.sql.text.tokens import split_script
from seachange.sql.text.tree import parse_tree
from seachange.sql.write.dml import compile_select
from seachange.sql.write.insert_select import InsertSelect
from seachange.values.types import TEXT, SqlType, from_duckdb

# The type of an untyped NULL.
_UNTYPED: Final = '"NULL"'


def run_create_as(statement: CreateTableAs, port: TransactionPort, duck: DuckSession, notices: list[str]) -> Result:
    name = statement.table
    if statement.if_not_exists and _exists(statement, port):
        notices.append(f'relation "{name}" already exists, skipping')
        return Result("CREATE TABLE AS")
    (raw,) = split_script(statement.query)
    tree = parse_tree(raw)
    if not isinstance(tree, exp.Query | exp.Values):
        raise errors.SyntaxProblem(detail="CREATE TABLE AS takes a query")
    template = compile_select(tree, port)
    names, types = duck.describe(bind_query(template, port, ()))
    # Where the binder could not determine a type, that of the values is used.
    bound = template.columns if template.columns is not None else [None] * len(types)
    found = [column.type.declared if column is not None and column.type is not None else None for column in bound]
    columns = _columns(statement, result_names(template, names), types, found)
    run_ddl(CreateTable(name, columns), "", port, duck, notices)
    if not statement.with_data:
        return Result("CREATE TABLE AS")
    table = exp.table_(
        exp.to_identifier(name.name, quoted=True),
        db=exp.to_identifier(name.schema, quoted=True) if name.schema is not None else None,
    )
    target = DmlTarget(name.schema, name.name, name.name)
    insert = InsertSelect(exp.Insert(this=table, expression=tree), target, target.resolve(port))
    count = insert.run(port, duck, ()).count
    return Result(f"SELECT {count}", count=count)


def _exists(statement: CreateTableAs, port: TransactionPort) -> bool:
    try:
        port.names.relation(statement.table.schema or port.schema.current_schema, statement.table.name)
    except errors.UndefinedTable:
        return False
    return True


def _columns(
    statement: CreateTableAs, names: Sequence[str], types: Sequence[str], known: Sequence[SqlType | None]
) -> tuple[ColumnDefinition, ...]:
    if len(statement.columns) > len(names):
        raise errors.SyntaxProblem(detail="CREATE TABLE AS specifies too many column names")
    chosen = [*statement.columns, *names[len(statement.columns) :]]
    found = zip(chosen, types, known, strict=True)
    return tuple(ColumnDefinition(name, type_ or _type(name, duck_type)) for name, duck_type, type_ in found)


def _type(name: str, duck_type: str) -> SqlType:
    found = TEXT if duck_type == _UNTYPED else from_duckdb(duck_type)
    if found is None:
        raise errors.FeatureNotSupported(
            feature=f'a column "{name}" of type {duck_type.lower()}', instead="Cast it to a type that columns can have."
        )
    return found
