"""UPDATE and DELETE: the old rows (and new values) by one DuckDB query, or by key without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.objects import View
from seachange.sql.compile.keys import KeyReader, NotByKey, match_key
from seachange.sql.compile.target import DmlTarget, draw_defaults, folded
from seachange.sql.compile.template import Template
from seachange.sql.duck.cursor import DuckRows, DuckSession
from seachange.sql.duck.operands import Argument, Operand, argument_count, check_argument_count, read_operand
from seachange.sql.duck.stream import ROWS_MAX
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, Row
from seachange.sql.query.plan import ChangeSource, is_same_table
from seachange.sql.query.query import bind_query
from seachange.sql.translate.assignment_casts import check_assignments
from seachange.sql.write.change_rows import ChangedRowStream, compile_old_rows, other_sources
from seachange.sql.write.returning import Known, Returning
from seachange.sql.write.setters import Setter, compile_computed, compile_setter, drawn_columns, read_assignments
from seachange.values.coercion import coercer

NOT_BY_KEY: Final = object()
# The schema and name of a relation.
Source = tuple[str | None, str]


class Delete:
    def __init__(self, tree: exp.Delete, target: DmlTarget, table: Table) -> None:
        self._target = target
        self._table = table
        self._returning = Returning(tree, table, target, found=True) if tree.args.get("returning") else None
        known = self._returning.known if self._returning is not None else []
        self._finder = Finder(tree, table, target, known)
        self._expected = _expected(self._finder, self._returning)
        self._bulk = ChangedRowStream(tree, table, target, None)
        self._reads = TargetReads(tree, table, target)

    def is_current(self, port: TransactionPort) -> bool:
        return is_same_table(port, self._target, self._table)

    def takes_constants(self, values: Sequence[Any]) -> bool:
        return self._returning is None and self._finder.query(values) is None

    def source(self, values: Sequence[Any]) -> ChangeSource:
        return ChangeSource("Delete", self._table, self._finder.query(values))

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        port.rights.check_access(self._table, "DELETE")
        self._reads.check_access(port)
        port.locks.begin_write(self._table)
        if self._returning is None and port.writes.changes_in_bulk(self._table, None):
            found = self._finder.run_few(port, duck, values)
            if found is None:
                count = self._bulk.run(port, duck, values)
                return Result(f"DELETE {count}", count=count)
        else:
            found = self._finder.run(port, duck, values)
        width = len(self._table.columns)
        old = [row[:width] for row in found.rows] if self._returning is not None else found.rows
        if old:
            port.writes.delete(self._table, old)
        tag = f"DELETE {len(old)}"
        if self._returning is None:
            return Result(tag, count=len(old))
        return self._returning.result(tag, port, duck, old, values, found.known(width))


class Update:
    def __init__(self, tree: exp.Update, target: DmlTarget, table: Table) -> None:
        self._target = target
        self._table = table
        computed: list[exp.Expr] = []
        assignments = read_assignments(tree.expressions, table)
        joined = tree.args.get("from_") is not None
        self._setters: list[tuple[int, Setter]] = []
        # The columns whose new values DuckDB computes.
        self._computed: list[Column] = []
        for column, node in assignments:
            # With other tables in scope, an unqualified name may be ambiguous.
            setter = (
                compile_computed(column, node, computed)
                if joined
                else compile_setter(column, node, table, target, computed)
            )
            self._setters.append((table.columns.index(column), setter))
            self._computed += [column] * (len(computed) - len(self._computed))
        self._drawn = drawn_columns(assignments, table)
        self._returning = _update_returning(tree, table, target, assignments)
        known = self._returning.known if self._returning is not None else []
        self._finder = Finder(tree, table, target, [*computed, *known])
        self._bulk = ChangedRowStream(tree, table, target, assignments)
        self._reads = TargetReads(tree, table, target)
        given = [o for _, node in assignments for o in _operands(node)]
        operands = [(column, read_operand(node)) for column, node in assignments]
        self._assigned = [(o.number, coercer(column.type)) for column, o in operands if isinstance(o, Argument)]
        self._expected = max(argument_count(given), _expected(self._finder, self._returning))

    def is_current(self, port: TransactionPort) -> bool:
        return is_same_table(port, self._target, self._table)

    def takes_constants(self, values: Sequence[Any]) -> bool:
        """A constant that the column cannot hold is an error even if there is no row to change."""
        try:
            for number, coerce in self._assigned:
                coerce(values[number - 1])
        except errors.Error:
            return False
        return self._returning is None and self._finder.query(values) is None

    def source(self, values: Sequence[Any]) -> ChangeSource:
        return ChangeSource("Update", self._table, self._finder.query(values), assigned=self._bulk.columns)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        port.rights.check_access(self._table, "UPDATE")
        self._reads.check_access(port)
        port.locks.begin_write(self._table)
        if self._returning is None and not self._drawn and port.writes.changes_in_bulk(self._table, self._bulk.columns):
            found = self._finder.run_few(port, duck, values)
            if found is None:
                count = self._bulk.run(port, duck, values)
                return Result(f"UPDATE {count}", count=count)
        else:
            found = self._finder.run(port, duck, values)
        width = len(self._table.columns)
        if found.types:
            check_assignments(self._computed, found.types[width : width + len(self._computed)])
        new: list[Row] = []
        if found.rows:
            new = [self._new_row(row[:width], values, row[width:]) for row in port.statement.each(found.rows)]
            draw_defaults(port, dict.fromkeys(self._drawn, range(len(new))), new)
            if self._returning is not None and self._table.has_generated:
                new = list(port.writes.fill(self._table, new))
            port.writes.update(self._table, [row[:width] for row in found.rows], new)
        tag = f"UPDATE {len(new)}"
        if self._returning is None:
            return Result(tag, count=len(new))
        return self._returning.result(tag, port, duck, new, values, found.known(width + len(self._computed)))

    def _new_row(self, old: Row, values: Sequence[Any], computed: Row) -> Row:
        new = list(old)
        for position, setter in self._setters:
            new[position] = setter(old, values, computed)
        return tuple(new)


def _update_returning(
    tree: exp.Update, table: Table, target: DmlTarget, assignments: list[tuple[Column, exp.Expr]]
) -> Returning | None:
    if not tree.args.get("returning"):
        return None
    # Generated columns change with the columns that they depend on.
    generated = [c for c in table.columns if c.generated is not None]
    assigned = frozenset(column.name for column in (*(c for c, _ in assignments), *generated))
    return Returning(tree, table, target, found=True, assigned=assigned)


def _expected(finder: Finder, returning: Returning | None) -> int:
    return max((*finder.template.parameters, *(returning.parameters if returning is not None else ())), default=0)


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows to change, all columns first; `types` of their columns unless they were found by key."""

    rows: list[Row]
    types: Sequence[str] = ()

    def known(self, width: int) -> Known:
        """The values that were requested after the first `width` columns."""
        return Known(self.types[width:], [row[width:] for row in self.rows])


class Finder:
    """Finds the rows that a statement changes, each once, with the additional values that it needs."""

    def __init__(self, tree: exp.Expr, table: Table, target: DmlTarget, asked: list[exp.Expr]) -> None:
        self._table = table
        others = other_sources(tree)
        self._joined = bool(others)
        where = tree.args.get("where")
        by_key = not others and not asked
        operands = match_key(where, table, target) if by_key else None
        self._key = KeyReader(table, operands) if operands is not None else None
        self.template: Template = compile_old_rows(tree, table, target, others, asked)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> FoundRows:
        found = self._by_key(port, values)
        if found is not None:
            return found
        return self._found(duck.rows(bind_query(self.template, port, values)))

    def run_few(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> FoundRows | None:
        """None if there are too many rows to change one by one."""
        found = self._by_key(port, values)
        if found is not None:
            return found
        answer = duck.few_rows(bind_query(self.template, port, values), ROWS_MAX)
        return None if answer is None else self._found(answer)

    def query(self, values: Sequence[Any]) -> Template | None:
        """The query that finds the rows, None if they are found by primary key."""
        return self.template if self._read_key(values) is NOT_BY_KEY else None

    def _by_key(self, port: TransactionPort, values: Sequence[Any]) -> FoundRows | None:
        wanted = self._read_key(values)
        if wanted is NOT_BY_KEY:
            return None
        row = port.reads.get(self._table, wanted) if wanted is not None else None
        return FoundRows([] if row is None else [row])

    def _read_key(self, values: Sequence[Any]) -> Any:
        """The key, None if no row can have it, or NOT_BY_KEY."""
        try:
            return self._key.read(values) if self._key is not None else NOT_BY_KEY
        except NotByKey:
            return NOT_BY_KEY

    def _found(self, answer: DuckRows) -> FoundRows:
        return FoundRows(self._once(answer.rows) if self._joined else answer.rows, answer.types)

    def _once(self, rows: list[Row]) -> list[Row]:
        """A join may find a row several times: it is changed once, by one of its matches."""
        key = [i for i, c in enumerate(self._table.columns) if c.id in self._table.primary.key]
        return list({tuple([row[i] for i in key]): row for row in rows}.values())


def _operands(node: exp.Expr) -> list[Operand]:
    found = [read_operand(node), *(read_operand(p) for p in node.find_all(exp.Parameter))]
    return [operand for operand in found if operand is not None]


class TargetReads:
    """An unqualified name inside subqueries is a column of their tables, or else of the target."""

    def __init__(self, tree: exp.Expr, table: Table, target: DmlTarget) -> None:
        self._table = table
        self._is_certain = False
        self._names: list[tuple[str, tuple[Source, ...]]] = []
        known = {*table.column_by_name, target.alias}
        assigned = {id(column) for node in tree.expressions for column in _assigned(node)}
        for column in tree.find_all(exp.Column):
            name = folded(column.this) if isinstance(column.this, exp.Identifier) else ""
            if id(column) in assigned or (column.table and folded(column.args["table"]) != target.alias):
                continue
            if column.table or (name in known and not (sources := tuple(_sources(column, tree)))):
                self._is_certain = True
            elif name in known:
                self._names.append((name, sources))

    def check_access(self, port: TransactionPort) -> None:
        if self._is_certain or any(not _have(port, sources, name) for name, sources in self._names):
            port.rights.check_access(self._table, "SELECT")


def _assigned(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.EQ):
        yield from node.this.find_all(exp.Column)


def _sources(column: exp.Expr, tree: exp.Expr) -> Iterator[Source]:
    """The tables of the enclosing subqueries."""
    select = column.find_ancestor(exp.Select)
    while select is not None and select is not tree:
        named = [select.args.get("from_"), *select.args.get("joins", ())]
        for source in (clause.this for clause in named if clause is not None):
            if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
                schema = source.args.get("db")
                yield (folded(schema) if schema is not None else None), folded(source.this)
        select = select.find_ancestor(exp.Select)


def _have(port: TransactionPort, sources: tuple[Source, ...], name: str) -> bool:
    for schema, relation in sources:
        try:
            found = port.names.relation(schema, relation)
        except errors.UndefinedTable:
            continue
        columns = found.columns if isinstance(found, View) else ()
        if name in columns or (isinstance(found, Table) and name in found.column_by_name):
            return True
    return False
