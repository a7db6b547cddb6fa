"""SET clauses: how a new value is computed, without an engine where possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Column, Table
from seachange.sql.compile.keys import plain_column
from seachange.sql.compile.target import DmlTarget, DrawnPlace, check_assigned, find_column, folded, with_default
from seachange.sql.duck.default_text import is_drawn
from seachange.sql.duck.operands import Argument, DefaultValue, DrawnValue, Given, Operand, read_operand
from seachange.sql.port.result import Row
from seachange.values.coercion import coercer, computed_coercer
from seachange.values.number_coercion import INTEGER_BITS, Coercer
from seachange.values.types import Kind, SqlType

# A new value from the old row, the statement's values, and the values that DuckDB computed for the row.
Setter = Callable[[Row, Sequence[Any], Row], Any]

_WIDE = Context(prec=100)


def read_assignments(items: Sequence[exp.Expr], table: Table) -> list[tuple[Column, exp.Expr]]:
    if not items:
        raise errors.SyntaxProblem(detail="at end of input")
    pairs: list[tuple[str, exp.Expr]] = []
    for item in items:
        if not isinstance(item, exp.EQ):
            raise errors.SyntaxProblem(detail="an assignment is expected after SET")
        pairs += _split_assignment(item)
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise errors.SyntaxProblem(detail=f'multiple assignments to column "{name}"')
    found = [(find_column(table, name), node) for name, node in pairs]
    for column, node in found:
        check_assigned(column, read_operand(node), "update")
    return found


def drawn_columns(assignments: Sequence[tuple[Column, exp.Expr]], table: Table) -> list[DrawnPlace]:
    """The columns that are set to an expression default."""
    asked = [c for c, node in assignments if is_drawn(c) and isinstance(read_operand(node), DefaultValue)]
    return [(table.columns.index(column), column) for column in asked]


def _split_assignment(item: exp.EQ) -> list[tuple[str, exp.Expr]]:
    if isinstance(item.this, exp.Column):
        return [(folded(item.this.this), item.expression)]
    targets, nodes = item.this.expressions, _split_row(item.expression)
    if not isinstance(item.this, exp.Tuple) or not nodes:
        raise errors.FeatureNotSupported(feature="this form of SET", instead="Assign column by column.")
    if len(targets) != len(nodes):
        raise errors.SyntaxProblem(detail="number of columns does not match number of values")
    return [(folded(t.this), n) for t, n in zip(targets, nodes, strict=True)]


def _split_row(node: exp.Expr) -> list[exp.Expr]:
    """The values of a row; of a subquery, one subquery for each of its columns."""
    if isinstance(node, exp.Tuple) or (isinstance(node, exp.Anonymous) and node.name.lower() == "row"):
        return list(node.expressions)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select) and not node.this.is_star:
        return [_only_column(node, position) for position in range(len(node.this.expressions))]
    return []


def _only_column(subquery: exp.Subquery, position: int) -> exp.Expr:
    only = subquery.copy()
    only.this.set("expressions", [only.this.expressions[position]])
    return only


def compile_setter(column: Column, node: exp.Expr, table: Table, target: DmlTarget, computed: list[exp.Expr]) -> Setter:
    """Expressions that need DuckDB are added to `computed`."""
    coerce = coercer(column.type)
    operand = read_operand(node)
    if operand is not None:
        return _set_operand(with_default(column, operand), coerce)
    return _step(column, node, table, target, coerce) or compile_computed(column, node, computed)


def compile_computed(column: Column, node: exp.Expr, computed: list[exp.Expr]) -> Setter:
    """By DuckDB, unless the value needs no engine."""
    coerce = coercer(column.type)
    operand = read_operand(node)
    if operand is not None:
        return _set_operand(with_default(column, operand), coerce)
    position = len(computed)
    computed.append(node.copy())
    coerce = computed_coercer(column.type)
    return lambda _old, _values, row: coerce(row[position])


def _set_operand(operand: Operand, coerce: Coercer) -> Setter:
    match operand:
        case Given(value):
            constant = coerce(value)
            return lambda _old, _values, _computed: constant
        case Argument(number):
            return lambda _old, values, _computed: coerce(values[number - 1])
        case DrawnValue():
            return lambda _old, _values, _computed: None
        case DefaultValue():
            raise AssertionError("defaults are resolved before")


def _step(column: Column, node: exp.Expr, table: Table, target: DmlTarget, coerce: Coercer) -> Setter | None:
    """`n = n + 1` and the like on an integer or numeric column."""
    if not isinstance(node, exp.Add | exp.Sub):
        return None
    name, operand = plain_column(node.this, target), read_operand(node.expression)
    source = table.column_by_name.get(name) if name is not None else None
    if source is None or not isinstance(operand, Given | Argument):
        return None
    if source.type.kind not in (*INTEGER_BITS, Kind.NUMERIC):
        return None
    position = table.columns.index(source)
    sign = -1 if isinstance(node, exp.Sub) else 1
    # An untyped literal takes the type of the other operand.
    read_text = coercer(SqlType(Kind.NUMERIC) if source.type.kind is Kind.NUMERIC else source.type)

    def step(old: Row, values: Sequence[Any], _computed: Row) -> Any:
        amount = operand.value if isinstance(operand, Given) else values[operand.number - 1]
        if isinstance(amount, str):
            amount = read_text(amount)
        return coerce(_add(old[position], amount, sign))

    return step


def _add(value: Any, amount: Any, sign: int) -> Any:
    if value is None or amount is None:
        return None
    if isinstance(amount, bool) or not isinstance(amount, int | float | Decimal):
        raise errors.DatatypeMismatch(detail=f"{type(amount).__name__} cannot be added to a number")
    if isinstance(amount, float):
        return float(value) + sign * amount
    if isinstance(value, Decimal) or isinstance(amount, Decimal):
        # Python's own arithmetic keeps 28 digits.
        return (_WIDE.add if sign > 0 else _WIDE.subtract)(Decimal(value), Decimal(amount))
    return value + sign * amount
