"""SELECT execution: tables are resolved through the transaction, their scans are inserted into the compiled text, and
DuckDB runs it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from seachange import errors
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.schema.objects import View
from seachange.sql.compile.join_keys import follow_links
from seachange.sql.compile.seek import bind_demands
from seachange.sql.compile.system_relations import is_system, is_virtual_relation, scan_system
from seachange.sql.compile.template import TableReference, Template, compile_template, parameter_name
from seachange.sql.compile.type_holes import FindTable, bind_types
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.duck.operands import Argument, Given, read_operand, to_duckdb
from seachange.sql.duck.returned_rows import read_as, read_given
from seachange.sql.duck.stream import BATCH_ROWS
from seachange.sql.parsing.parse import TreeStatement, parse_script
from seachange.sql.pgcatalog.rows import find_relation
from seachange.sql.pgcatalog.scan import (
    ACTIVITY,
    BUILDS,
    LOCKS,
    SETTINGS,
    STATEMENTS,
    catalog_of,
    scan_activity,
    scan_builds,
    scan_locks,
    scan_settings,
    scan_statements,
)
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, ResultColumn, RowSink, row_shower
from seachange.sql.query.feed_scan import scan_feed
from seachange.sql.query.result_columns import result_columns
from seachange.sql.query.views import add_session_values, bind_view
from seachange.sql.text.scope import GIVEN_SCHEMA
from seachange.values.timezone import session_zone

# The size of DuckDB's vectors.
_PART_ROWS: Final = 2_048


def bind_query(
    template: Template, port: TransactionPort, values: Sequence[Any], given: Mapping[str, Any] | None = None
) -> DuckQuery:
    """The template with the scans of its tables at the statement's snapshot."""
    views: list[DuckQuery] = []
    scans = scan_tables(template, port, values, given, views)
    written = [n for n in template.parameters if n not in template.unwritten]
    parameters: dict[str, Any] = {parameter_name(n): to_duckdb(values[n - 1]) for n in written}
    relations: dict[str, Any] = {}
    for scan in scans.values():
        parameters.update(scan.parameters)
        relations.update(scan.relations)
    hidden_by_cte = template.cte_names & {name.lower() for name in relations}
    if hidden_by_cte:
        raise errors.DuplicateTable(name=min(hidden_by_cte))
    types = bind_types(template.types, port, _finder(port, given), values)
    sql = template.fill([scans[r].sql for r in template.tables], types)
    shape = tuple([_shape(reference, port) for reference in template.tables])
    return add_session_values(DuckQuery(sql, parameters, relations, template.session_values, shape), views)


def _shape(reference: TableReference, port: TransactionPort) -> Hashable:
    """Distinguishes relations of the same name; the columns of a view keep their types."""
    if reference.given or reference.feed is not None or is_virtual_relation(reference.schema, reference.name):
        return None
    found = port.names.relation(reference.schema, reference.name)
    return tuple([column.type for column in found.columns]) if isinstance(found, Table) else found.id


def _finder(port: TransactionPort, given: Mapping[str, Any] | None) -> FindTable:
    def find(schema: str | None, name: str) -> object:
        return _given_rows(port, given, name).schema if schema == GIVEN_SCHEMA else port.names.relation(schema, name)

    return find


def _given_rows(port: TransactionPort, given: Mapping[str, Any] | None, name: str) -> pa.Table:
    return given[name] if given and name in given else port.statement.handed[name]


def scan_tables(
    template: Template,
    port: TransactionPort,
    values: Sequence[Any],
    given: Mapping[str, Any] | None = None,
    views: list[DuckQuery] | None = None,
) -> dict[TableReference, Scan]:
    """How each table is read. `given` are Arrow tables for references that are not to the catalog's tables; `views`
    collects the queries of views."""
    scans: dict[TableReference, Scan] = {}
    # Of joined tables, those with conditions come first: their rows narrow the others.
    known: dict[int, tuple[Table, Scan]] = {}
    for reference in sorted(template.tables, key=_turn):
        if reference.feed is not None:
            scans[reference] = scan_feed(reference.feed, port, values, len(scans))
        elif reference.given:
            relation = f"given_{reference.name}"
            rows = _given_rows(port, given, reference.name)
            scans[reference] = Scan(f"SELECT {read_given(rows.schema)} FROM {relation}", {}, {relation: rows})  # noqa: S608
        elif is_system(reference.schema, reference.name):
            scans[reference] = scan_system(reference.name, port.views.system_rows(reference.name), len(scans))
        elif (catalog := find_relation(reference.schema, reference.name)) is not None:
            scans[reference] = _scan_catalog(catalog, port, len(scans))
        elif reference not in scans:
            table = port.names.relation(reference.schema, reference.name)
            if isinstance(table, SequenceObject):
                port.rights.check_access(table, "SELECT")
                scans[reference] = _scan_sequence(table, port, len(scans))
                continue
            if isinstance(table, View):
                query = bind_view(table, port)
                scans[reference] = Scan(query.sql, query.parameters, query.relations, "view")
                if views is not None:
                    views.append(query)
                continue
            port.rights.check_access(table, *(("UPDATE", "DELETE", "SELECT") if reference.hidden else ("SELECT",)))
            conditions = bind_demands(reference.demands, table, values) if reference.demands else ()
            linked = follow_links(reference.links, table, known)
            scan = port.reads.scan(table, reference.hidden, reference.columns, reference.sought, (*conditions, *linked))
            scans[reference] = scan
            if reference.number >= 0:
                known[reference.number] = (table, scan)
    return scans


def check_readable(reference: TableReference, port: TransactionPort) -> None:
    """Raises 42501 unless the role may read the relation, even if it turns out that nothing needs to be read."""
    schema, name = reference.schema, reference.name
    is_virtual = reference.feed is not None or is_virtual_relation(schema, name)
    if not reference.given and not is_virtual:
        port.rights.check_access(port.names.relation(schema, name), "SELECT")


def _scan_catalog(name: tuple[str, str], port: TransactionPort, number: int) -> Scan:
    if name == SETTINGS:
        return scan_settings(port.statement.session.settings(), number)
    if name == STATEMENTS:
        return scan_statements(port.statement.session.prepared(), number)
    if name == LOCKS:
        return scan_locks(port.views.shown_locks(), catalog_of(port).facts, number)
    if name == BUILDS:
        return scan_builds(port.views.shown_builds(), catalog_of(port).facts, number)
    if name == ACTIVITY:
        return scan_activity(port.views.shown_sessions(), catalog_of(port).facts, number)
    return catalog_of(port).scan(name, number)


def _scan_sequence(sequence: SequenceObject, port: TransactionPort, number: int) -> Scan:
    """A sequence as a relation of one row, as in PostgreSQL."""
    state = port.sequences.sequence_state(sequence)
    row = pa.table({"last_value": [state.last], "log_cnt": [0], "is_called": [state.called]})
    relation = f"sequence_{number}"
    return Scan(f"SELECT * FROM {relation}", {}, {relation: row}, "sequence")  # noqa: S608


def _turn(reference: TableReference) -> tuple[bool, bool]:
    return not reference.demands, bool(reference.links)


def check_parameter_count(template: Template, values: Sequence[Any]) -> None:
    expected = max(template.parameters, default=0)
    if expected != len(values):
        raise errors.WrongParameterCount(expected=expected, given=len(values))


def run_query(
    template: Template, port: TransactionPort, duck: DuckSession, values: Sequence[Any], sink: RowSink | None = None
) -> Result:
    """With a `sink`, only small results are kept in memory."""
    check_parameter_count(template, values)
    query = bind_query(template, port, values)
    if sink is not None:
        return _run_into(sink, template, port, duck, query)
    found = duck.rows(query)
    columns = result_columns(template, found.names, found.types)
    return Result(f"SELECT {len(found.rows)}", columns, found.rows, len(found.rows))


def _run_into(sink: RowSink, template: Template, port: TransactionPort, duck: DuckSession, query: DuckQuery) -> Result:
    with duck.parts(query, _PART_ROWS) as found:
        columns = result_columns(template, found.names, found.types)
        first = next(found.parts, [])
        if len(first) < _PART_ROWS:
            return Result(f"SELECT {len(first)}", columns, first, len(first))
        show = row_shower(columns, session_zone())
        count = 0
        sink.begin(columns)
        for rows in chain([first], found.parts):
            port.statement.pause(0)
            sink.take(rows if show is None else show(rows))
            count += len(rows)
    return Result(f"SELECT {count}", columns, (), count)


def describe_query(
    template: Template, port: TransactionPort, duck: DuckSession, values: Sequence[Any]
) -> tuple[ResultColumn, ...]:
    """The columns, without the rows."""
    names, types = duck.describe(bind_query(template, port, values))
    return result_columns(template, names, types)


def read_arguments(text: str) -> tuple[TreeStatement, list[Given | Argument] | None]:
    """A query that returns the arguments as its one row, and the arguments themselves if none needs a query."""
    (statement, *more) = parse_script(f"SELECT {text}")
    tree = statement.tree if isinstance(statement, TreeStatement) else None
    extra = [key for key, value in tree.args.items() if value and key != "expressions"] if tree is not None else []
    if more or not isinstance(tree, exp.Select) or not isinstance(statement, TreeStatement) or extra:
        raise errors.SyntaxProblem(detail="argument list expected")
    operands = [read_operand(node) for node in tree.expressions]
    plain = [operand for operand in operands if isinstance(operand, Given | Argument)]
    return statement, plain if len(plain) == len(operands) else None


def count_parameters(tree: exp.Expr) -> int:
    return max((int(node.this.name) for node in tree.find_all(exp.Parameter) if node.this.name.isdigit()), default=0)


class SharedRows:
    """The rows of a query that is evaluated once, and whose result several parts of a statement read."""

    def __init__(self, tree: exp.Expr) -> None:
        self.count = count_parameters(tree)
        self._template = compile_template(tree)

    def read(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> pa.Table:
        query = bind_query(self._template, port, values[: self.count])
        _, types = duck.describe(query)
        with duck.batches(query, BATCH_ROWS) as reader:
            return read_as(reader.read_all(), types)
