"""CREATE TABLE AS: a table with the columns of a query's result, and its rows, in one transaction."""

from __future__ import annotations

from sqlglot import exp

from seachange import errors
from seachange.model.statements import CreateTable, CreateTableAs
from seachange.sql.change.query_columns import result_columns
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
    columns = result_columns(template, result_names(template, names), types, statement.columns)
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
