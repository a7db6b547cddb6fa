"""Operands: values that need no engine, such as literals, parameters and DEFAULT; and their form for DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Column
from seachange.sql.translate.networks import IMPLIED
from seachange.values.interval import Interval, canonical_interval
from seachange.values.json_text import show_json
from seachange.values.network import ADDRESSES


@dataclass(frozen=True, slots=True)
class Given:
    value: Any


@dataclass(frozen=True, slots=True)
class Argument:
    """The user's `number`-th parameter, from 1; higher numbers are values that DuckDB computes for the statement."""

    number: int


@dataclass(frozen=True, slots=True)
class ListArgument:
    """A parameter whose value is a list, of which each element is an operand."""

    number: int


@dataclass(frozen=True, slots=True)
class DefaultValue:
    pass


@dataclass(frozen=True, slots=True)
class DrawnValue:
    """What the default of the column gives, which need not be its own."""

    column: Column


Operand = Given | Argument | DefaultValue | DrawnValue

NULL = Given(None)


def read_operand(node: exp.Expr) -> Operand | None:
    """None if the expression must be evaluated."""
    match node:
        case exp.Literal():
            return Given(node.name if node.is_string else _number(node.name))
        case exp.Null():
            return NULL
        case exp.Boolean():
            return Given(bool(node.this))
        case exp.ByteString():
            return Given(str(node.this))
        case exp.Neg(this=exp.Literal(is_string=False)):
            return Given(_negated(_number(node.this.name)))
        case exp.Parameter(this=exp.Literal(is_string=False)):
            return Argument(int(node.this.name))
        case exp.Paren():
            return read_operand(node.this)
        case exp.Cast() if node.meta_get(IMPLIED):
            return read_operand(node.this)
        case _:
            return DefaultValue() if _is_default(node) else None


def _number(text: str) -> int | Decimal:
    return int(text) if text.isdigit() else Decimal(text)


def _negated(number: int | Decimal) -> int | Decimal:
    """With all its digits: Python's own minus keeps 28. There is only one zero."""
    return number.copy_negate() if isinstance(number, Decimal) and number else -number


def _is_default(node: exp.Expr) -> bool:
    """sqlglot reads DEFAULT as a variable in VALUES, as a column in SET."""
    if isinstance(node, exp.Var):
        return node.name.upper() == "DEFAULT"
    if not isinstance(node, exp.Column) or node.table or not isinstance(node.this, exp.Identifier):
        return False
    return not node.this.quoted and node.name.upper() == "DEFAULT"


def argument_count(operands: Iterable[Operand]) -> int:
    return max((o.number for o in operands if isinstance(o, Argument)), default=0)


def check_argument_count(expected: int, values: Sequence[Any]) -> None:
    if expected != len(values):
        raise errors.WrongParameterCount(expected=expected, given=len(values))


def _interval(value: Interval) -> duckdb.Value:
    return duckdb.Value(canonical_interval(value), duckdb.sqltypes.INTERVAL)


def _list(value: list[Any]) -> Any:
    """All elements have one type, except NULLs."""
    kind = next((type(element) for element in value if element is not None), None)
    if kind is Interval:
        texts = [None if element is None else canonical_interval(element) for element in value]
        return duckdb.Value(texts, duckdb.list_type(duckdb.sqltypes.INTERVAL))
    if kind in ADDRESSES:
        return [None if element is None else str(element) for element in value]
    if kind is dict:
        return [None if element is None else show_json(element) for element in value]
    return value


# By Python type; DuckDB accepts all others as they are.
_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    Interval: _interval,
    dict: show_json,
    list: _list,
    **dict.fromkeys(ADDRESSES, str),
}


def to_duckdb(value: Any) -> Any:
    convert = _CONVERSIONS.get(type(value))
    return value if convert is None else convert(value)
