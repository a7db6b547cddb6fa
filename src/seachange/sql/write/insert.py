"""INSERT ... VALUES and DEFAULT VALUES: literals and parameters without an engine, other expressions by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Column, Table
from seachange.runtime.interruption import each
from seachange.sql.compile.target import (
    DmlTarget,
    DrawnPlace,
    check_assigned,
    draw_defaults,
    find_column,
    is_computed,
    is_ignored,
    overriding_of,
    with_default,
)
from seachange.sql.compile.template import Template, compile_template
from seachange.sql.duck import operands
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.default_text import as_default
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, Row
from seachange.sql.query.plan import ChangeSource, is_same_table
from seachange.sql.query.query import bind_query
from seachange.sql.text.list_places import rows_of_lists
from seachange.sql.translate.assignment_casts import check_assignable, check_assignments
from seachange.sql.write.returning import Returning
from seachange.sql.write.upsert import Upsert
from seachange.values.coercion import coercer, computed_coercer

# One value of a row: the number of its parameter and its conversion, or (-1, the value itself).
Cell = tuple[int, Any]


def insert_columns(tree: exp.Insert, table: Table) -> tuple[tuple[Column, ...], bool]:
    """The target columns, and whether the statement lists them."""
    schema = tree.this
    if not isinstance(schema, exp.Schema):
        return table.visible_columns, False
    names = [i.name if i.args.get("quoted") else i.name.lower() for i in schema.expressions]
    for name in names:
        if names.count(name) > 1:
            raise errors.DuplicateColumn(name=name)
    return tuple(find_column(table, name) for name in names), True


def check_width(columns: Sequence[Column], listed: bool, width: int) -> None:
    if width > len(columns):
        raise errors.SyntaxProblem(detail="INSERT has more expressions than target columns")
    if listed and width < len(columns):
        raise errors.SyntaxProblem(detail="INSERT has more target columns than expressions")


class InsertRows:
    def __init__(self, tree: exp.Insert, target: DmlTarget, table: Table) -> None:
        self._target = target
        self._table = table
        computed: list[tuple[Column, exp.Expr]] = []
        rows = _read_rows(tree, table, computed)
        self._computed: Template | None = None
        self._computed_columns = [column for column, _ in computed]
        if computed:
            query = exp.Select(expressions=[value for _, value in computed])
            if tree.args.get("with_") is not None:
                query.set("with_", tree.args["with_"].copy())
            self._computed = compile_template(query)
        self._ending = InsertEnding(tree, target, table)
        self._expected = max(_expected_arguments(rows, self._computed), self._ending.expected)
        # Of rows of lists, all cells are columns.
        self._of_lists = rows_of_lists(tree) is not None
        # The rows with values that are computed as defaults.
        self._drawn: dict[DrawnPlace, list[int]] = {}
        self._rows = [self._compile_row(number, row) for number, row in enumerate(rows)]

    def _compile_row(self, number_of_row: int, row: dict[str, operands.Operand]) -> list[Cell]:
        cells: list[Cell] = []
        for position, column in enumerate(self._table.columns):
            fallback: operands.Operand = operands.NULL if is_computed(column) else operands.DefaultValue()
            named = row if column in self._table.visible_columns else {}
            operand = with_default(column, named.get(column.name, fallback))
            coerce = coercer(column.type)
            match operand:
                case operands.Given(value):
                    cells.append((-1, coerce(value)))
                case operands.Argument(number) if number < 0:
                    # Values that DuckDB computes follow the user's parameters.
                    cells.append((self._expected - number - 1, computed_coercer(column.type)))
                case operands.Argument(number):
                    cells.append((number - 1, coerce))
                case operands.DrawnValue(drawn):
                    self._drawn.setdefault((position, drawn), []).append(number_of_row)
                    cells.append((-1, None))
                case operands.DefaultValue():
                    raise AssertionError("resolved above")
        return cells

    def is_current(self, port: TransactionPort) -> bool:
        return is_same_table(port, self._target, self._table)

    def takes_constants(self, values: Sequence[Any]) -> bool:
        return self._computed is None and self._ending.is_plain and len(values) == self._expected

    def source(self, values: Sequence[Any]) -> ChangeSource:
        return ChangeSource("Insert", self._table, self._computed, len(self._rows), conflicts=self._ending.conflicts)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        operands.check_argument_count(self._expected, values)
        self._ending.begin(port)
        given = values
        if self._computed is not None:
            answer = duck.rows(bind_query(self._computed, port, values))
            check_assignments(self._computed_columns, answer.types)
            given = [*values, *answer.rows[0]]
        if self._of_lists:
            (row,) = self._rows
            rows = _rows_of_lists(row, values)
            drawn = {place: list(range(len(rows))) for place in self._drawn}
        else:
            rows = [
                tuple([held if position < 0 else held(given[position]) for position, held in row])
                for row in port.statement.each(self._rows)
            ]
            drawn = self._drawn
        if drawn:
            draw_defaults(port, drawn, rows)
        return self._ending.insert(port, duck, rows, values)


def _rows_of_lists(row: Sequence[Cell], values: Sequence[Any]) -> list[Row]:
    count = next(len(values[position]) for position, _ in row if position >= 0)
    columns = [
        repeat(held, count) if position < 0 else [held(value) for value in each(values[position])]
        for position, held in row
    ]
    return list(zip(*columns, strict=True))


class InsertEnding:
    """ON CONFLICT and RETURNING of an INSERT, wherever its rows come from."""

    def __init__(self, tree: exp.Insert, target: DmlTarget, table: Table) -> None:
        self._table = table
        conflict = tree.args.get("conflict")
        self.upsert = Upsert(conflict, table, target) if conflict is not None else None
        self.returning = Returning(tree, table, target) if tree.args.get("returning") else None
        self.expected = max(
            (
                *(self.upsert.parameters if self.upsert is not None else ()),
                *(self.returning.parameters if self.returning is not None else ()),
            ),
            default=0,
        )

    @property
    def is_plain(self) -> bool:
        return self.upsert is None and self.returning is None

    @property
    def conflicts(self) -> list[str]:
        return [arbiter.index.name for arbiter in self.upsert.arbiters] if self.upsert is not None else []

    def begin(self, port: TransactionPort) -> None:
        port.rights.check_access(self._table, "INSERT")
        if self.upsert is not None:
            self.upsert.check_access(port)
        port.locks.begin_write(self._table)

    def insert(self, port: TransactionPort, duck: DuckSession, rows: Sequence[Row], values: Sequence[Any]) -> Result:
        if self._table.has_generated and (self.upsert is not None or self.returning is not None):
            rows = port.writes.fill(self._table, rows)
        if self.upsert is not None:
            rows = self.upsert.run(port, duck, rows, values).changed
        else:
            port.writes.insert(self._table, rows)
        tag = f"INSERT 0 {len(rows)}"
        if self.returning is None:
            return Result(tag, count=len(rows))
        return self.returning.result(tag, port, duck, rows, values)


def _read_rows(
    tree: exp.Insert, table: Table, computed: list[tuple[Column, exp.Expr]]
) -> list[dict[str, operands.Operand]]:
    columns, listed = insert_columns(tree, table)
    overriding = overriding_of(tree)
    if tree.args.get("default"):
        return [{}]
    rows = []
    for item in tree.expression.expressions:
        nodes = item.expressions if isinstance(item, exp.Tuple) else [item]
        check_width(columns, listed, len(nodes))
        given = [(c, n) for c, n in zip(columns, nodes, strict=False) if not is_ignored(c, overriding)]
        rows.append({c.name: _read_value(c, n, computed, overriding) for c, n in given})
    if len({len(item.expressions) if isinstance(item, exp.Tuple) else 1 for item in tree.expression.expressions}) > 1:
        raise errors.SyntaxProblem(detail="VALUES lists must all be the same length")
    return rows


def _read_value(
    column: Column, node: exp.Expr, computed: list[tuple[Column, exp.Expr]], overriding: str | None
) -> operands.Operand:
    operand = operands.read_operand(node)
    check_assigned(column, operand, "insert into", overriding)
    if operand is not None:
        return operand
    drawn = as_default(column, node)
    if drawn is not None:
        check_assignable(column, drawn[1])
        return operands.DrawnValue(drawn[0])
    computed.append((column, node.copy()))
    return operands.Argument(-len(computed))


def _expected_arguments(rows: list[dict[str, operands.Operand]], computed: Template | None) -> int:
    in_rows = operands.argument_count(operand for row in rows for operand in row.values())
    return max(in_rows, max(computed.parameters, default=0) if computed is not None else 0)
