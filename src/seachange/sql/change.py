"""UPDATE and DELETE: the old rows (and new values) by one DuckDB query, or by key without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from seachange.model.descriptor import Table
from seachange.sql.duck import DuckSession
from seachange.sql.keys import KeyReader, NotByKey, match_key
from seachange.sql.operands import Operand, argument_count, check_argument_count, read_operand
from seachange.sql.plan import is_same_table
from seachange.sql.port import TransactionPort
from seachange.sql.query import bind_query
from seachange.sql.result import Result, Row
from seachange.sql.setters import Setter, compile_setter, read_assignments
from seachange.sql.target import Target
from seachange.sql.template import WITH_HIDDEN, Template, compile_template


class Delete:
    def __init__(self, tree: exp.Delete, target: Target, table: Table) -> None:
        self._target = target
        self._table = table
        where = tree.args.get("where")
        operands = match_key(where, table, target)
        self._key = KeyReader(table, operands) if operands is not None else None
        self._template = compile_old_rows(table, target, where, [])
        self._expected = max(self._template.parameters, default=0)

    def is_current(self, port: TransactionPort) -> bool:
        return is_same_table(port, self._target, self._table)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        old = find_old_rows(port, duck, self._table, self._key, self._template, values)
        if old:
            port.delete(self._table, old)
        return Result(f"DELETE {len(old)}", count=len(old))


class Update:
    def __init__(self, tree: exp.Update, target: Target, table: Table) -> None:
        self._target = target
        self._table = table
        computed: list[exp.Expr] = []
        where = tree.args.get("where")
        assignments = read_assignments(tree, table)
        operands = match_key(where, table, target)
        self._setters: list[tuple[int, Setter]] = []
        for column, node in assignments:
            setter = compile_setter(column, node, table, target, computed)
            self._setters.append((table.columns.index(column), setter))
        self._key = KeyReader(table, operands) if operands is not None and not computed else None
        self._template = compile_old_rows(table, target, where, computed)
        given = [o for _, node in assignments for o in _operands(node)]
        self._expected = max(argument_count(given), max(self._template.parameters, default=0))

    def is_current(self, port: TransactionPort) -> bool:
        return is_same_table(port, self._target, self._table)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        found = find_old_rows(port, duck, self._table, self._key, self._template, values)
        if found:
            width = len(self._table.columns)
            old = [row[:width] for row in found]
            new = [self._new_row(row[:width], values, row[width:]) for row in found]
            port.update(self._table, old, new)
        return Result(f"UPDATE {len(found)}", count=len(found))

    def _new_row(self, old: Row, values: Sequence[Any], computed: Row) -> Row:
        new = list(old)
        for position, setter in self._setters:
            new[position] = setter(old, values, computed)
        return tuple(new)


def find_old_rows(
    port: TransactionPort,
    duck: DuckSession,
    table: Table,
    key: KeyReader | None,
    template: Template,
    values: Sequence[Any],
) -> list[Row]:
    if key is not None:
        try:
            wanted = key.read(values)
        except NotByKey:
            pass
        else:
            row = port.get(table, wanted) if wanted is not None else None
            return [] if row is None else [row]
    return duck.rows(bind_query(template, port, values)).rows


def compile_old_rows(table: Table, target: Target, where: exp.Expr | None, computed: list[exp.Expr]) -> Template:
    """A query for all columns of the rows to change, the hidden ones included, and for computed values."""
    source = exp.table_(
        exp.to_identifier(target.name, quoted=True),
        db=exp.to_identifier(target.schema, quoted=True) if target.schema else None,
        alias=exp.to_identifier(target.alias, quoted=True),
    )
    source.meta[WITH_HIDDEN] = True
    columns = [exp.column(c.name, table=target.alias, quoted=True) for c in table.columns]
    query = exp.Select(expressions=[*columns, *computed], from_=exp.From(this=source))
    if where is not None:
        query.set("where", where.copy())
    return compile_template(query)


def _operands(node: exp.Expr) -> list[Operand]:
    found = [read_operand(node), *(read_operand(p) for p in node.find_all(exp.Parameter))]
    return [operand for operand in found if operand is not None]
