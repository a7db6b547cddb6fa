"""EXPLAIN: the tables that a statement reads, their parts, and DuckDB's plan; for DML also the constraints that are
checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from seachange import errors
from seachange.model.ids import ColumnId
from seachange.model.scan import ScanFacts
from seachange.model.schema.descriptor import Table
from seachange.model.statements import Explain
from seachange.model.states import REFUSING
from seachange.sql.change.explain_ddl import explain_ddl
from seachange.sql.compile.system_relations import is_virtual_relation
from seachange.sql.compile.target import is_required
from seachange.sql.compile.template import Template
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.parsing.parse import TreeStatement, parse_script
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, table_column
from seachange.sql.query.databases import check_named_databases
from seachange.sql.query.plan import ChangeSource
from seachange.sql.query.query import bind_query, check_parameter_count, scan_tables
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
        return _result(explain_ddl(statement, port, duck))
    (parsed, *more) = parse_script(statement.query)
    if more or not isinstance(parsed, TreeStatement):
        raise errors.SyntaxProblem(detail="EXPLAIN takes one query")
    check_named_databases(parsed, port)
    if changing_queries(parsed.tree):
        raise errors.FeatureNotSupported(feature="EXPLAIN of a WITH that changes rows", instead="Explain its parts.")
    if parsed.command != "SELECT":
        return _result(_explain_change(parsed, statement.analyze, port, duck, values))
    template = compile_select(parsed.tree, port)
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
    port.rights.check_access(source.table, source.verb.upper())
    lines = [f"{source.verb} on {source.table.schema}.{source.table.name}: {_rows_in_words(source)}"]
    if source.template is not None:
        lines += _table_lines(source.template, port)
        lines += _access_lines(source.template, port, values)
        lines += _plan_lines(source.template, False, port, duck, values)
    lines += _constraint_lines(source, port)
    if analyze:
        lines.append(f"Ran: {plan.run(port, duck, values).tag}")
    return lines


def _table_lines(template: Template, port: TransactionPort) -> list[str]:
    tables = dict.fromkeys(
        (r.schema, r.name)
        for r in template.tables
        if not r.given and r.feed is None and not is_virtual_relation(r.schema, r.name)
    )
    lines = []
    for schema, name in tables:
        table = port.names.relation(schema, name)
        if isinstance(table, Table):
            lines.append(f"Table {table.schema}.{table.name}: {_facts(port.reads.describe(table))}")
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


def _rows_in_words(source: ChangeSource) -> str:
    if source.given:
        how = "with values computed by DuckDB" if source.template is not None else "without DuckDB"
        return f"{source.given} row{'s' if source.given > 1 else ''} of VALUES, {how}"
    return "rows of a query" if source.template is not None else "one row by primary key, without DuckDB"


def _constraint_lines(source: ChangeSource, port: TransactionPort) -> Iterator[str]:
    """In the order in which they are checked."""
    table = source.table
    is_insert, is_delete = source.verb == "Insert", source.verb == "Delete"
    changed = {c.id for c in table.columns if is_insert or c in (source.assigned or ())}
    required = [c.name for c in table.columns if is_required(c) and c.id in changed]
    if required:
        yield f"Checks NOT NULL: {', '.join(required)}"
    if not is_delete:
        yield from (f"Checks {check.name}: CHECK" for check in table.checks if check.state in REFUSING)
    for index in table.indexes:
        hidden = any(table.column_by_id[c].hidden for c in index.key)
        if index.unique and index.state in REFUSING and not hidden and not changed.isdisjoint(index.key):
            conflict = ", decides ON CONFLICT" if index.name in source.conflicts else ""
            yield f"Checks {index.name}: unique ({_names(table, index.key)}){conflict}"
    for key in table.foreign_keys:
        if key.state in REFUSING and not changed.isdisjoint(key.columns):
            when = ", at COMMIT" if key.initially_deferred else ""
            yield f"Checks {key.name}: foreign key ({_names(table, key.columns)}){when}"
    for child, key in port.schema.references_to(table):
        referred = table.index_by_id[key.parent_index].key
        if key.state in REFUSING and (is_delete or (not is_insert and not changed.isdisjoint(referred))):
            event, action = ("DELETE", key.on_delete) if is_delete else ("UPDATE", key.on_update)
            yield f"Looks at {child.name} for {key.name}: ON {event} {action.value}"


def _names(table: Table, columns: tuple[ColumnId, ...]) -> str:
    return ", ".join(table.column_by_id[c].name for c in columns)
