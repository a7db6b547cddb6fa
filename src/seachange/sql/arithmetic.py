"""What kind of number an expression gives in PostgreSQL, as far as the types of columns tell it; and what DuckDB has to
be told so that it gives the same: it divides numerics as doubles, and multiplies them in too few digits.

**Invariant:** where a kind is not known nothing is changed; a product is exact or refused, unless a factor is a
quotient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from sqlglot import exp

from seachange.model.types import NUMERIC_DEFAULT, NUMERIC_PRECISION_MAX, Kind, SqlType
from seachange.storage.duck import AS_DOUBLE, AS_INTEGER, AS_NUMERIC, AS_SPAN, EXACT_MACRO, SUM_MACRO

ColumnType = Callable[[exp.Column], SqlType | None]


class Family(Enum):
    INTEGER = auto()
    NUMERIC = auto()
    REAL = auto()
    DOUBLE = auto()
    DATE = auto()
    TIME = auto()


@dataclass(frozen=True, slots=True)
class Number:
    """`digits` and `scale` are those of DuckDB's decimal; what is not `exact` was divided."""

    family: Family
    digits: int = 0
    scale: int = 0
    exact: bool = True


_INTEGER: Final = Number(Family.INTEGER, 10)
_BIGINT: Final = Number(Family.INTEGER, 19)
_DOUBLE: Final = Number(Family.DOUBLE)
_QUOTIENT: Final = Number(Family.NUMERIC, *NUMERIC_DEFAULT, exact=False)
_KINDS: Final = {
    Kind.SMALLINT: Number(Family.INTEGER, 5),
    Kind.INTEGER: _INTEGER,
    Kind.BIGINT: _BIGINT,
    Kind.REAL: Number(Family.REAL),
    Kind.DOUBLE: _DOUBLE,
    Kind.DATE: Number(Family.DATE),
    Kind.TIME: Number(Family.TIME),
}
_CASTS: Final = {
    exp.DType.SMALLINT: _KINDS[Kind.SMALLINT],
    exp.DType.INT: _INTEGER,
    exp.DType.BIGINT: _BIGINT,
    exp.DType.FLOAT: _KINDS[Kind.REAL],
    exp.DType.DOUBLE: _DOUBLE,
    exp.DType.DATE: _KINDS[Kind.DATE],
    exp.DType.TIME: _KINDS[Kind.TIME],
}
_MOMENTS: Final = frozenset({Family.DATE, Family.TIME})
# What gives a number as its arguments are.
_ALIKE: Final = (exp.Min, exp.Max, exp.Abs, exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif)
_PASSING: Final = (exp.Paren, exp.Neg, exp.Window, exp.Filter)
# Up to here DuckDB counts in 64 bits, and refuses what is larger.
_SHORT_DIGITS: Final = 18
# A product with more behind its point leaves too few digits before it.
_SCALE_MAX: Final = 28
# Multiplies in 128 bits.
_WIDENING: Final = f"CAST(1 AS DECIMAL({NUMERIC_PRECISION_MAX},0)) * "


def infer_number(node: exp.Expr, column_type: ColumnType) -> Number | None:
    """None if it is not known, or no number."""
    match node:
        case exp.Literal(is_string=False):
            return _literal(node.name)
        case exp.Column():
            return _of_type(column_type(node))
        case exp.Cast():
            return _cast(node)
        case exp.Count() | exp.Length():
            return _BIGINT
        case exp.Avg():
            inner = infer_number(node.this, column_type)
            return _QUOTIENT if is_divided_exactly(inner) else inner and _DOUBLE
        case exp.Anonymous() if node.name.lower() == SUM_MACRO and len(node.expressions) == 1:
            return _sum(infer_number(node.expressions[0], column_type))
        case exp.Sum():
            return _sum(infer_number(node.this, column_type))
        case exp.Add() | exp.Sub() | exp.Mod() | exp.Mul() | exp.Div():
            return _calculated(node, infer_number(node.this, column_type), infer_number(node.expression, column_type))
        case _ if isinstance(node, _PASSING):
            return infer_number(node.this, column_type)
        case _:
            return _alike(node, column_type) if isinstance(node, _ALIKE) else None


def _alike(node: exp.Expr, column_type: ColumnType) -> Number | None:
    parts = [part for part in (node.this, node.args.get("expression"), *node.expressions) if isinstance(part, exp.Expr)]
    return _wider([infer_number(part, column_type) for part in parts])


def _literal(text: str) -> Number:
    if text.isdigit():
        return Number(Family.INTEGER, len(text))
    if "e" in text.lower():
        return _DOUBLE
    whole, _, fraction = text.partition(".")
    return Number(Family.NUMERIC, len(whole) + len(fraction), len(fraction))


def _of_type(type_: SqlType | None) -> Number | None:
    if type_ is None or type_.enum:
        return None
    return Number(Family.NUMERIC, *type_.digits) if type_.kind is Kind.NUMERIC else _KINDS.get(type_.kind)


def _cast(node: exp.Cast) -> Number | None:
    if node.to.is_type(exp.DType.DECIMAL):
        digits = [int(part.name) for part in node.to.expressions] or list(NUMERIC_DEFAULT)
        return Number(Family.NUMERIC, digits[0], digits[1] if len(digits) > 1 else 0)
    return next((number for kind, number in _CASTS.items() if node.to.is_type(kind)), None)


def _sum(inner: Number | None) -> Number | None:
    if inner is None or inner.family in (Family.REAL, Family.DOUBLE):
        return inner
    if inner.family is Family.INTEGER:
        return _BIGINT if inner.digits < _BIGINT.digits else Number(Family.NUMERIC, NUMERIC_PRECISION_MAX)
    return Number(inner.family, NUMERIC_PRECISION_MAX, inner.scale, inner.exact)


def _wider(found: list[Number | None]) -> Number | None:
    known = [number for number in found if number is not None]
    if len(known) != len(found):
        return None
    families = {number.family for number in known}
    for family in (Family.DOUBLE, Family.REAL, Family.NUMERIC, Family.INTEGER):
        if family in families and families.isdisjoint(_MOMENTS):
            scale = max(n.scale for n in known)
            whole = max(n.digits - n.scale for n in known)
            return Number(family, min(whole + scale, NUMERIC_PRECISION_MAX), scale, all(n.exact for n in known))
    return None


def _calculated(node: exp.Expr, left: Number | None, right: Number | None) -> Number | None:
    if left is None or right is None:
        return None
    together = _wider([left, right])
    if together is None:
        return _INTEGER if isinstance(node, exp.Sub) and left.family is right.family is Family.DATE else None
    if together.family is Family.REAL and left.family is not right.family:
        return _DOUBLE
    if together.family is not Family.NUMERIC:
        return together
    if isinstance(node, exp.Div):
        return _QUOTIENT
    if isinstance(node, exp.Mul):
        return _product(left, right)
    digits = min(together.digits + 1, NUMERIC_PRECISION_MAX)
    return Number(Family.NUMERIC, digits, together.scale, together.exact)


def _product(left: Number, right: Number) -> Number:
    exact = left.exact and right.exact
    if left.scale + right.scale > _SCALE_MAX:
        return Number(Family.NUMERIC, *NUMERIC_DEFAULT, exact=exact)
    digits = min(left.digits + right.digits, NUMERIC_PRECISION_MAX)
    return Number(Family.NUMERIC, digits, left.scale + right.scale, exact)


def is_divided_exactly(number: Number | None) -> bool:
    """Whether an average of such numbers is a numeric."""
    return number is not None and number.family in (Family.INTEGER, Family.NUMERIC)


# What is put before the parentheses around a calculation and each of its operands.
Prefixes = tuple[str, str, str]
NO_PREFIXES: Final[Prefixes] = ("", "", "")
# Days between dates are a number, and DuckDB takes no time of the day from another.
_DIFFERENCES: Final[dict[Family, Prefixes]] = {
    Family.DATE: (AS_INTEGER, "", ""),
    Family.TIME: ("", AS_SPAN, AS_SPAN),
}


def prefixes(node: exp.Expr, column_type: ColumnType) -> Prefixes:
    if isinstance(node, exp.Avg):
        return (AS_NUMERIC if is_divided_exactly(infer_number(node.this, column_type)) else "", "", "")
    left, right = infer_number(node.this, column_type), infer_number(node.expression, column_type)
    if left is None or right is None:
        return NO_PREFIXES
    if isinstance(node, exp.Sub):
        return _DIFFERENCES.get(left.family, NO_PREFIXES) if left.family is right.family else NO_PREFIXES
    families = {left.family, right.family}
    if Family.REAL in families and len(families) > 1 and families.isdisjoint(_MOMENTS):
        return ("", AS_DOUBLE, AS_DOUBLE)
    if Family.NUMERIC not in families or not families <= {Family.NUMERIC, Family.INTEGER}:
        return NO_PREFIXES
    return (AS_NUMERIC, "", "") if isinstance(node, exp.Div) else _product_prefixes(left, right)


def _product_prefixes(left: Number, right: Number) -> Prefixes:
    if left.scale + right.scale > _SCALE_MAX:
        if left.exact and right.exact:
            return ("", EXACT_MACRO, EXACT_MACRO)
        return (AS_NUMERIC, AS_DOUBLE, AS_DOUBLE)
    short = max(left.digits, right.digits) <= _SHORT_DIGITS
    return ("", _WIDENING, "") if short and left.digits + right.digits > _SHORT_DIGITS else NO_PREFIXES
