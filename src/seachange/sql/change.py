"""UPDATE and DELETE: the old rows (and new values) by one DuckDB query, or by key without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from seachange.model.descriptor import Column, Table
from seachange.sql.duck import DuckSession
from seachange.sql.keys import KeyReader, NotByKey, match_key
from seachange.sql.operands import Operand, argument_count, check_argument_count, read_operand
from seachange.sql.plan import is_same_table
from seachange.sql.port import TransactionPort
from seachange.sql.query import bind_query
from seachange.sql.result import Result, Row
from seachange.sql.returning import Known, Returning
from seachange.sql.setters import Setter, compile_computed, compile_setter, read_assignments
from seachange.sql.target import Target
from seachange.sql.template import WITH_HIDDEN, Template, compile_template


class Delete:
    def __init__(self, tree: exp.Delete, target: Target, table: Table) -> None:
        self._target = target
        self._table = table
        self._returning = Returning(tree, table, target, found=True) if tree.args.get("returning") else None
        known = self._returning.known if self._returning is not None else []
        self._finder = Finder(tree, table, target, known)
        self._expected = _expected(self._finder, self._returning)

    def is_current(self, port: TransactionPort) -> bool:
        return is_same_table(port, self._target, self._table)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        found = self._finder.run(port, duck, values)
        width = len(self._table.columns)
        old = [row[:width] for row in found.rows] if self._returning is not None else found.rows
        if old:
            port.delete(self._table, old)
        tag = f"DELETE {len(old)}"
        if self._returning is None:
            return Result(tag, count=len(old))
        return self._returning.result(tag, port, duck, old, values, found.known(width))


class Update:
    def __init__(self, tree: exp.Update, target: Target, table: Table) -> None:
        self._target = target
        self._table = table
        computed: list[exp.Expr] = []
        assignments = read_assignments(tree.expressions, table)
        joined = tree.args.get("from_") is not None
        self._setters: list[tuple[int, Setter]] = []
        for column, node in assignments:
            # With other tables in sight, a name alone does not tell whose column it is.
            setter = (
                compile_computed(column, node, computed)
                if joined
                else compile_setter(column, node, table, target, computed)
            )
            self._setters.append((table.columns.index(column), setter))
        self._computed = len(computed)
        self._returning = _update_returning(tree, table, target, assignments)
        known = self._returning.known if self._returning is not None else []
        self._finder = Finder(tree, table, target, [*computed, *known])
        given = [o for _, node in assignments for o in _operands(node)]
        self._expected = max(argument_count(given), _expected(self._finder, self._returning))

    def is_current(self, port: TransactionPort) -> bool:
        return is_same_table(port, self._target, self._table)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        found = self._finder.run(port, duck, values)
        width = len(self._table.columns)
        new: list[Row] = []
        if found.rows:
            new = [self._new_row(row[:width], values, row[width:]) for row in found.rows]
            port.update(self._table, [row[:width] for row in found.rows], new)
        tag = f"UPDATE {len(new)}"
        if self._returning is None:
            return Result(tag, count=len(new))
        return self._returning.result(tag, port, duck, new, values, found.known(width + self._computed))

    def _new_row(self, old: Row, values: Sequence[Any], computed: Row) -> Row:
        new = list(old)
        for position, setter in self._setters:
            new[position] = setter(old, values, computed)
        return tuple(new)


def _update_returning(
    tree: exp.Update, table: Table, target: Target, assignments: list[tuple[Column, exp.Expr]]
) -> Returning | None:
    if not tree.args.get("returning"):
        return None
    assigned = frozenset(column.name for column, _ in assignments)
    return Returning(tree, table, target, found=True, assigned=assigned)


def _expected(finder: Finder, returning: Returning | None) -> int:
    return max((*finder.template.parameters, *(returning.parameters if returning is not None else ())), default=0)


@dataclass(frozen=True, slots=True)
class Found:
    """Rows to change, all columns first; `types` of their columns unless they were found by key."""

    rows: list[Row]
    types: Sequence[str] = ()

    def known(self, width: int) -> Known:
        """What was asked for beside the first `width` columns."""
        return Known(self.types[width:], [row[width:] for row in self.rows])


class Finder:
    """Finds the rows that a statement is about, each once, with the values that are asked for beside them."""

    def __init__(self, tree: exp.Expr, table: Table, target: Target, asked: list[exp.Expr]) -> None:
        self._table = table
        others = _other_sources(tree)
        self._joined = bool(others)
        where = tree.args.get("where")
        by_key = not others and not asked
        operands = match_key(where, table, target) if by_key else None
        self._key = KeyReader(table, operands) if operands is not None else None
        self.template: Template = _compile_old_rows(tree, table, target, others, asked)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Found:
        if self._key is not None:
            try:
                wanted = self._key.read(values)
            except NotByKey:
                pass
            else:
                row = port.get(self._table, wanted) if wanted is not None else None
                return Found([] if row is None else [row])
        answer = duck.rows(bind_query(self.template, port, values))
        return Found(self._once(answer.rows) if self._joined else answer.rows, answer.types)

    def _once(self, rows: list[Row]) -> list[Row]:
        """A join may find a row several times: it is changed once, by one of its matches."""
        key = [i for i, c in enumerate(self._table.columns) if c.id in self._table.primary.key]
        return list({tuple([row[i] for i in key]): row for row in rows}.values())


def _other_sources(tree: exp.Expr) -> list[exp.Expr]:
    """What FROM of an UPDATE or USING of a DELETE puts beside the table."""
    from_ = tree.args.get("from_")
    return [from_.this] if from_ is not None else list(tree.args.get("using") or ())


def _compile_old_rows(
    tree: exp.Expr, table: Table, target: Target, others: list[exp.Expr], asked: list[exp.Expr]
) -> Template:
    """A query for all columns of the rows to change, the hidden ones included, and for computed values."""
    with_, where = tree.args.get("with_"), tree.args.get("where")
    # A WITH query of the same name does not hide the table that the statement changes.
    schema = target.schema or ("public" if with_ is not None else None)
    source = exp.table_(
        exp.to_identifier(target.name, quoted=True),
        db=exp.to_identifier(schema, quoted=True) if schema else None,
        alias=exp.to_identifier(target.alias, quoted=True),
    )
    source.meta[WITH_HIDDEN] = True
    columns = [exp.column(c.name, table=target.alias, quoted=True) for c in table.columns]
    joins = [exp.Join(this=other.copy(), kind="CROSS") for other in others]
    query = exp.Select(expressions=[*columns, *asked], from_=exp.From(this=source), joins=joins)
    if where is not None:
        query.set("where", where.copy())
    if with_ is not None:
        query.set("with_", with_.copy())
    return compile_template(query)


def _operands(node: exp.Expr) -> list[Operand]:
    found = [read_operand(node), *(read_operand(p) for p in node.find_all(exp.Parameter))]
    return [operand for operand in found if operand is not None]
