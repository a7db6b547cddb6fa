"""EXPLAIN: the tables that a statement reads, their parts, and DuckDB's plan; for DML also the constraints that are
checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from seachange import errors
from seachange.model.scan import ScanFacts
from seachange.model.schema.descriptor import Table
from seachange.model.statements.session_statements import Explain
from seachange.sql.change.explain_ddl import explain_ddl
from seachange.sql.compile.system_relations import is_told
from seachange.sql.compile.template import Template
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.parsing.parse import TreeStatement, parse_script
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, table_column
from seachange.sql.query.databases import check_named_databases
from seachange.sql.query.query import bind_query, check_parameter_count, scan_tables
from seachange.sql.run.explain_change import constraint_lines, rows_in_words
from seachange.sql.write.dml import compile_plan, compile_select, select_key_table, selects_by_index
from seachange.sql.write.insert import InsertRows
from seachange.sql.write.insert_select import InsertSelect
from seachange.sql.write.update import Delete, Update
from seachange.sql.write.with_changes import changing_queries
from seachange.values.types import TEXT

_NO_PLAN = "The rows found are the answer: nothing is left for DuckDB to do"
_FILE = re.compile(r"\S+\.parquet")


def run_explain(statement: Explain, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
    if statement.ddl is not None:
        return _result(explain_ddl(statement.query, statement.ddl, port, duck))
    (parsed, *more) = parse_script(statement.query)
    if more or not isinstance(parsed, TreeStatement):
        raise errors.SyntaxProblem(detail="EXPLAIN takes one query")
    check_named_databases(parsed, port)
    if changing_queries(parsed.tree):
        raise errors.FeatureNotSupported(feature="EXPLAIN of a WITH that changes rows", instead="Explain its parts.")
    if parsed.command != "SELECT":
        return _result(_explain_change(parsed, statement.analyze, port, duck, values))
    template = compile_select(parsed.tree)
    check_parameter_count(template, values)
    by_key = select_key_table(parsed.tree, port)
    lines = [f"Look-up by primary key in {by_key}"] if by_key is not None else []
    # It also checks privileges, so that a role without them learns nothing.
    ways = _access_lines(template, port, values)
    lines += _table_lines(template, port)
    if by_key is None or statement.analyze:
        lines += ways
        if selects_by_index(parsed.tree, port, values) and not statement.analyze:
            lines.append(_NO_PLAN)
        else:
            lines += _plan_lines(template, statement.analyze, port, duck, values)
    return _result(lines)


def _result(lines: Sequence[str]) -> Result:
    return Result("EXPLAIN", (table_column("QUERY PLAN", TEXT),), [(line,) for line in lines], len(lines))


def _explain_change(
    statement: TreeStatement, analyze: bool, port: TransactionPort, duck: DuckSession, values: Sequence[Any]
) -> list[str]:
    """EXPLAIN of INSERT, UPDATE or DELETE: access path and checked constraints; ANALYZE runs it."""
    plan = compile_plan(statement.tree, port)
    if not isinstance(plan, Delete | Update | InsertRows | InsertSelect):
        raise errors.FeatureNotSupported(feature=f"EXPLAIN of {statement.command}", instead="Explain its USING.")
    source = plan.source(values)
    port.check_access(source.table, source.verb.upper())
    lines = [f"{source.verb} on {source.table.schema}.{source.table.name}: {rows_in_words(source)}"]
    if source.template is not None:
        lines += _table_lines(source.template, port)
        lines += _access_lines(source.template, port, values)
        lines += _plan_lines(source.template, False, port, duck, values)
    lines += constraint_lines(source, port)
    if analyze:
        lines.append(f"Ran: {plan.run(port, duck, values).tag}")
    return lines


def _table_lines(template: Template, port: TransactionPort) -> list[str]:
    tables = dict.fromkeys((r.schema, r.name) for r in template.tables if not r.given and not is_told(r.schema, r.name))
    lines = []
    for schema, name in tables:
        table = port.relation(schema, name)
        if isinstance(table, Table):
            lines.append(f"Table {table.schema}.{table.name}: {_facts(port.describe(table))}")
    return lines


def _access_lines(template: Template, port: TransactionPort, values: Sequence[Any]) -> list[str]:
    """The access path of each table reference, which depends on the values."""
    scans = scan_tables(template, port, values)
    return [f"Access to {reference.name}: {scan.access}" for reference, scan in scans.items()]


def _facts(facts: ScanFacts) -> str:
    own = f", {facts.own_rows} rows of this transaction" if facts.own_rows else ""
    return (
        f"{facts.untouched} segments untouched, {facts.touched} touched "
        f"({facts.superseded} rows superseded), {facts.inline_rows} rows inline{own}"
    )


def _plan_lines(
    template: Template, analyze: bool, port: TransactionPort, duck: DuckSession, values: Sequence[Any]
) -> list[str]:
    query = bind_query(template, port, values)
    verb = "EXPLAIN ANALYZE" if analyze else "EXPLAIN"
    answer = duck.rows(replace(query, sql=f"{verb} {query.sql}"))
    text = _FILE.sub(_no_file, "\n".join(row[1] for row in answer.rows))
    return text.strip("\n").split("\n")


def _no_file(match: re.Match[str]) -> str:
    """As wide as the text that it replaces, to keep the frames that DuckDB draws intact."""
    return "(a segment)".ljust(len(match.group()))
