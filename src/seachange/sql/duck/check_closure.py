"""CHECK expressions compiled to Python functions, so that a single row is checked without a DuckDB statement.

Only what means the same in both is compiled: comparisons, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE, addition,
subtraction and multiplication of integers, length, lower and upper, over booleans, integers, numerics, doubles and
text.

**Invariant:** a compiled function returns exactly what DuckDB returns (True, False, None for NULL), or raises
`Undecided` for values for which that is not certain.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from seachange.values.types import Kind, SqlType

Row = tuple[Any, ...]
Evaluate = Callable[[Row], Any]


class Undecided(Exception):
    """DuckDB must evaluate the expression for this row."""


class _Unknown(Exception):
    """The expression contains something that is not compiled."""


class _Class(Enum):
    BOOLEAN = auto()
    INTEGER = auto()
    NUMERIC = auto()
    DOUBLE = auto()
    TEXT = auto()
    NULL = auto()


@dataclass(frozen=True, slots=True)
class _Value:
    type: _Class
    evaluate: Evaluate
    # Of a literal, so that it can be read as a value of the other operand's type.
    literal: Any = None


_CLASSES: dict[Kind, _Class] = {
    Kind.BOOLEAN: _Class.BOOLEAN,
    Kind.SMALLINT: _Class.INTEGER,
    Kind.INTEGER: _Class.INTEGER,
    Kind.BIGINT: _Class.INTEGER,
    Kind.NUMERIC: _Class.NUMERIC,
    Kind.DOUBLE: _Class.DOUBLE,
    Kind.TEXT: _Class.TEXT,
    Kind.VARCHAR: _Class.TEXT,
}
_COMPARISONS: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
_ARITHMETIC: dict[type[exp.Expr], Callable[[int, int], int]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}
# The wildcards of LIKE.
_WILDCARDS = {"%": ".*", "_": "."}
# Within these bounds no integer type but the smallest overflows; beyond them DuckDB decides.
_SAFE = 1 << 31
# Numerics of up to this many digits are compared by DuckDB without conversion.
_DIGITS_MAX = 18

# Column names of the expression ("c7"), with their positions in a row and their types.
Columns = Mapping[str, tuple[int, SqlType]]


def compile_check_expression(expression: str, columns: Columns) -> Evaluate | None:
    """None if DuckDB must evaluate the expression."""
    try:
        value = _compile(sqlglot.parse_one(expression, dialect="duckdb"), columns)
    except (_Unknown, SqlglotError):
        return None
    return value.evaluate if value.type in (_Class.BOOLEAN, _Class.NULL) else None


_RESULTS: dict[Kind, _Class] = {
    Kind.BOOLEAN: _Class.BOOLEAN,
    Kind.INTEGER: _Class.INTEGER,
    Kind.BIGINT: _Class.INTEGER,
    Kind.TEXT: _Class.TEXT,
}


def compile_value(expression: str, columns: Columns, type_: SqlType) -> Evaluate | None:
    """The same for an expression of any type; None if DuckDB must evaluate it."""
    try:
        value = _compile(sqlglot.parse_one(expression, dialect="duckdb"), columns)
    except (_Unknown, SqlglotError):
        return None
    return value.evaluate if value.type is _RESULTS.get(type_.kind) else None


def _compile(node: exp.Expr, columns: Columns) -> _Value:
    match node:
        case exp.Paren():
            return _compile(node.this, columns)
        case exp.Column():
            return _column(node, columns)
        case exp.Literal() | exp.Boolean() | exp.Null() | exp.Neg():
            return _literal(node)
        case exp.And() | exp.Or():
            return _connect(node, columns)
        case exp.Not():
            return _negate(_compile(node.this, columns))
        case exp.Is() | exp.Like() if node.args.get("negate"):
            return _negate(_compile(_positive(node), columns))
        case exp.Is():
            return _is_null(node, columns)
        case exp.In():
            return _contained(node, columns)
        case exp.Between():
            return _between(node, columns)
        case exp.Like():
            return _like(node, columns)
        case exp.Length() | exp.Lower() | exp.Upper():
            return _text_function(node, columns)
        case exp.Cast(this=exp.Length()) if node.to.is_type(exp.DType.INT):
            return _text_function(node.this, columns)
        case _ if type(node) in _COMPARISONS:
            left, right = _compile(node.this, columns), _compile(node.expression, columns)
            return _compare(_COMPARISONS[type(node)], left, right)
        case _ if type(node) in _ARITHMETIC:
            return _calculate(node, columns)
        case _:
            raise _Unknown


def _column(node: exp.Column, columns: Columns) -> _Value:
    known = columns.get(node.name)
    if known is None or known[1].kind not in _CLASSES:
        raise _Unknown
    position, type_ = known
    if type_.kind is Kind.NUMERIC and type_.digits[0] > _DIGITS_MAX:
        raise _Unknown
    if type_.kind is Kind.DOUBLE:
        return _Value(_Class.DOUBLE, _number(position))
    return _Value(_CLASSES[type_.kind], operator.itemgetter(position))


def _number(position: int) -> Evaluate:
    def evaluate(row: Row) -> Any:
        value = row[position]
        # In SQL, NaN equals itself and is greater than all other values.
        if value is not None and value != value:
            raise Undecided
        return value

    return evaluate


def _literal(node: exp.Expr) -> _Value:
    match node:
        case exp.Null():
            return _Value(_Class.NULL, lambda _: None)
        case exp.Boolean():
            truth = bool(node.this)
            return _Value(_Class.BOOLEAN, lambda _: truth)
        case exp.Literal(is_string=True):
            text = node.name
            return _Value(_Class.TEXT, lambda _: text, text)
        case exp.Literal():
            return _numeric_literal(node.name, 1)
        case exp.Neg(this=exp.Literal(is_string=False)):
            return _numeric_literal(node.this.name, -1)
        case _:
            raise _Unknown


def _numeric_literal(text: str, sign: int) -> _Value:
    if len(text) > _DIGITS_MAX or not text.replace(".", "", 1).isdigit():
        raise _Unknown
    value: Any = sign * (int(text) if text.isdigit() else Decimal(text))
    return _Value(_Class.INTEGER if text.isdigit() else _Class.NUMERIC, lambda _: value, value)


def _connect(node: exp.Connector, columns: Columns) -> _Value:
    left, right = (_truth(_compile(side, columns)) for side in (node.this, node.expression))
    decisive = isinstance(node, exp.Or)

    def evaluate(row: Row) -> Any:
        one = left(row)
        if one is decisive:
            return decisive
        other = right(row)
        if other is decisive:
            return decisive
        return None if one is None or other is None else not decisive

    return _Value(_Class.BOOLEAN, evaluate)


def _truth(value: _Value) -> Evaluate:
    if value.type not in (_Class.BOOLEAN, _Class.NULL):
        raise _Unknown
    return value.evaluate


def _negate(value: _Value) -> _Value:
    inner = _truth(value)

    def evaluate(row: Row) -> Any:
        truth = inner(row)
        return None if truth is None else not truth

    return _Value(_Class.BOOLEAN, evaluate)


def _positive(node: exp.Expr) -> exp.Expr:
    """Without the NOT that IS NOT NULL and NOT LIKE keep in the node itself."""
    positive = node.copy()
    positive.set("negate", None)
    return positive


def _is_null(node: exp.Is, columns: Columns) -> _Value:
    if not isinstance(node.expression, exp.Null):
        raise _Unknown
    inner = _compile(node.this, columns).evaluate
    return _Value(_Class.BOOLEAN, lambda row: inner(row) is None)


def _compare(holds: Callable[[Any, Any], bool], left: _Value, right: _Value) -> _Value:
    one, other = _operand(left, right), _operand(right, left)

    def evaluate(row: Row) -> Any:
        a, b = one(row), other(row)
        return None if a is None or b is None else holds(a, b)

    return _Value(_Class.BOOLEAN, evaluate)


def _operand(value: _Value, other: _Value) -> Evaluate:
    """How `value` is read in a comparison with `other`: numbers of both exact kinds compare without conversion."""
    if _Class.NULL in (value.type, other.type) or value.type is other.type:
        return value.evaluate
    exact = {_Class.INTEGER, _Class.NUMERIC}
    if value.type in exact and other.type in exact:
        return value.evaluate
    if value.type is _Class.DOUBLE and other.literal is not None and other.type in exact:
        return value.evaluate
    if other.type is _Class.DOUBLE and value.literal is not None and value.type in exact:
        number = float(value.literal)
        return lambda _: number
    raise _Unknown


def _contained(node: exp.In, columns: Columns) -> _Value:
    if not node.expressions or node.args.get("query") or node.args.get("unnest"):
        raise _Unknown
    value = _compile(node.this, columns)
    tests = [_compare(operator.eq, value, _compile(item, columns)).evaluate for item in node.expressions]

    def evaluate(row: Row) -> Any:
        found = [test(row) for test in tests]
        return True if True in found else None if None in found else False

    return _Value(_Class.BOOLEAN, evaluate)


def _between(node: exp.Between, columns: Columns) -> _Value:
    if node.args.get("symmetric"):
        raise _Unknown
    as_and = exp.And(
        this=exp.GTE(this=node.this.copy(), expression=node.args["low"].copy()),
        expression=exp.LTE(this=node.this.copy(), expression=node.args["high"].copy()),
    )
    return _compile(as_and, columns)


def _like(node: exp.Like, columns: Columns) -> _Value:
    value, pattern = _compile(node.this, columns), node.expression
    if value.type is not _Class.TEXT or not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise _Unknown
    # PostgreSQL and DuckDB differ in the meaning of a backslash.
    if "\\" in pattern.name:
        raise _Unknown
    inner, counts = value.evaluate, "_" in pattern.name
    matches = re.compile("".join(_WILDCARDS.get(c, re.escape(c)) for c in pattern.name), re.DOTALL).fullmatch

    def evaluate(row: Row) -> Any:
        text = inner(row)
        if text is not None and counts and not text.isascii():
            raise Undecided
        return None if text is None else matches(text) is not None

    return _Value(_Class.BOOLEAN, evaluate)


def _text_function(node: exp.Func, columns: Columns) -> _Value:
    value = _compile(node.this, columns)
    if value.type is not _Class.TEXT:
        raise _Unknown
    inner = value.evaluate
    if isinstance(node, exp.Length):

        def length(row: Row) -> Any:
            text = inner(row)
            return None if text is None else len(text)

        return _Value(_Class.INTEGER, length)
    change = str.lower if isinstance(node, exp.Lower) else str.upper

    def changed(row: Row) -> Any:
        text = inner(row)
        if text is not None and not text.isascii():
            raise Undecided
        return None if text is None else change(text)

    return _Value(_Class.TEXT, changed)


def _calculate(node: exp.Expr, columns: Columns) -> _Value:
    left, right = _compile(node.this, columns), _compile(node.expression, columns)
    if left.type is not _Class.INTEGER or right.type is not _Class.INTEGER:
        raise _Unknown
    if any(columns[column.name][1].kind is Kind.SMALLINT for column in node.find_all(exp.Column)):
        raise _Unknown
    one, other, apply = left.evaluate, right.evaluate, _ARITHMETIC[type(node)]

    def evaluate(row: Row) -> Any:
        a, b = one(row), other(row)
        if a is None or b is None:
            return None
        result = apply(a, b)
        if not -_SAFE <= result < _SAFE:
            raise Undecided
        return result

    return _Value(_Class.INTEGER, evaluate)
