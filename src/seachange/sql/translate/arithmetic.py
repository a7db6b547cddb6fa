"""Arithmetic on numerics: infers which kind of number an expression gives in PostgreSQL from the types of columns, and
chooses the DuckDB functions that give the same. DuckDB itself divides numerics as doubles, and multiplies them in too
few digits.

**Invariant:** where a kind is not known nothing is changed; a quotient has the digits that PostgreSQL gives it, as far
as there are; a product is exact or refused, unless a factor is a quotient; numerics that become of one type keep their
digits, or are refused, unless they are quotients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from sqlglot import exp

from seachange.sql.translate.casts import WIDE
from seachange.storage.duck import AS_DOUBLE, AS_INTEGER, AS_SPAN, FIRST_MACRO, SUM_MACRO, DividedBy, MultipliedBy
from seachange.storage.duck_functions import COMPLAIN
from seachange.storage.duck_numerics import numeric_name
from seachange.values.types import (
    NUMERIC_DEFAULT,
    NUMERIC_PRECISION_MAX,
    QUOTIENT_SCALE,
    QUOTIENT_SCALES,
    Kind,
    SqlType,
)

ColumnType = Callable[[exp.Column], SqlType | None]


class NumberFamily(Enum):
    INTEGER = auto()
    NUMERIC = auto()
    REAL = auto()
    DOUBLE = auto()
    DATE = auto()
    TIME = auto()


@dataclass(frozen=True, slots=True)
class Number:
    """`digits` and `scale` are those of DuckDB's decimal; what is not `exact` was divided."""

    family: NumberFamily
    digits: int = 0
    scale: int = 0
    exact: bool = True


_INTEGER: Final = Number(NumberFamily.INTEGER, 10)
_BIGINT: Final = Number(NumberFamily.INTEGER, 19)
_DOUBLE: Final = Number(NumberFamily.DOUBLE)
# A standard deviation, which shows no trailing zeros.
_DEVIATION: Final = Number(NumberFamily.NUMERIC, NUMERIC_PRECISION_MAX, 20, exact=False)
_KINDS: Final = {
    Kind.SMALLINT: Number(NumberFamily.INTEGER, 5),
    Kind.INTEGER: _INTEGER,
    Kind.BIGINT: _BIGINT,
    Kind.REAL: Number(NumberFamily.REAL),
    Kind.DOUBLE: _DOUBLE,
    Kind.DATE: Number(NumberFamily.DATE),
    Kind.TIME: Number(NumberFamily.TIME),
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
_MOMENTS: Final = frozenset({NumberFamily.DATE, NumberFamily.TIME})
# What gives a number as its arguments are.
_ALIKE: Final = (exp.Min, exp.Max, exp.Abs, exp.AnyValue, exp.FirstValue, exp.LastValue, exp.NthValue)
# What gives one of its arguments, which DuckDB makes of one type: of a numeric it may cut off digits for that.
_MEETINGS: Final = (exp.Case, exp.Coalesce, exp.Greatest, exp.Least, exp.Array, exp.Mod)
# They give whole numbers, or with a second argument so many digits behind the point.
_ROUNDINGS: Final = (exp.Round, exp.Trunc, exp.Floor, exp.Ceil, exp.Sign)
# They give a double precision, of a numeric too.
_IN_DOUBLES: Final = (exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow)
_SPREADS: Final[dict[type[exp.Expr], str]] = {
    exp.Variance: "variance",
    exp.VariancePop: "wholevariance",
    exp.Stddev: "deviation",
    exp.StddevSamp: "deviation",
    exp.StddevPop: "wholedeviation",
}
_PASSING: Final = (exp.Paren, exp.Neg, exp.Window, exp.Filter)
# Up to here DuckDB counts in 64 bits, and refuses what is larger.
_SHORT_DIGITS: Final = 18
# Those that DuckDB's integers have, other than the smallest.
_INTEGER_DIGITS: Final = (_INTEGER.digits, _BIGINT.digits, NUMERIC_PRECISION_MAX)
_BIGINT_MAX: Final = 2**63 - 1
# A product with more behind its point leaves too few digits before it.
_SCALE_MAX: Final = 28


def infer_number(node: exp.Expr, column_type: ColumnType) -> Number | None:
    """None if it is not known, or no number."""
    match node:
        case exp.Literal(is_string=False):
            return _literal(node.name)
        case exp.Column():
            return _of_type(column_type(node))
        case exp.Cast():
            return _cast(node, infer_number(node.this, column_type) if is_open(node) else None)
        case exp.Count() | exp.Length():
            return _BIGINT
        case exp.Avg():
            inner = infer_number(node.this, column_type)
            return _quotient(inner, _BIGINT) if inner is not None and _is_exact(inner) else inner and _DOUBLE
        case _ if type(node) in _SPREADS:
            return _spread(node, infer_number(node.this, column_type))
        case _ if isinstance(node, _IN_DOUBLES):
            return _DOUBLE
        case _ if isinstance(node, _MEETINGS):
            return _met([infer_number(value, column_type) for value in meeting_parts(node)])
        case _ if isinstance(node, _ROUNDINGS):
            return _rounded(node, infer_number(node.this, column_type))
        case exp.Lag() | exp.Lead():
            either = [node.this, node.args.get("default")]
            return _wider([infer_number(value, column_type) for value in either if value is not None])
        case exp.Nullif():
            return _first_of(infer_number(node.this, column_type), infer_number(node.expression, column_type))
        case exp.Subquery(this=exp.Select(expressions=[only])):
            return infer_number(only.unalias(), column_type)
        case exp.Explode(this=exp.Cast(to=exp.DataType(this=exp.DType.ARRAY, expressions=[element]))):
            return infer_number(exp.Cast(this=exp.Null(), to=element.copy()), column_type)
        case exp.Distinct() if len(node.expressions) == 1:
            return infer_number(node.expressions[0], column_type)
        case exp.Anonymous() if node.name.lower() == SUM_MACRO and len(node.expressions) == 1:
            return _sum(infer_number(node.expressions[0], column_type))
        case exp.Sum():
            return _sum(infer_number(node.this, column_type))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _calculated(node, infer_number(node.this, column_type), infer_number(node.expression, column_type))
        case _ if isinstance(node, _PASSING):
            return infer_number(node.this, column_type)
        case _:
            return _alike(node, column_type) if isinstance(node, _ALIKE) else None


def meeting_parts(node: exp.Expr) -> list[exp.Expr]:
    """The values that become of one type: neither NULL nor an error is one."""
    match node:
        case exp.Case():
            values = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
        case exp.Mod():
            values = [node.this, node.expression]
        case _:
            values = [node.args.get("this"), *node.expressions]
    return [
        value
        for value in values
        if value is not None
        and not isinstance(value, exp.Null)
        and not (isinstance(value, exp.Anonymous) and value.name == COMPLAIN)
    ]


def _alike(node: exp.Expr, column_type: ColumnType) -> Number | None:
    parts = [part for part in (node.this, node.args.get("expression"), *node.expressions) if isinstance(part, exp.Expr)]
    return _wider([infer_number(part, column_type) for part in parts])


def _literal(text: str) -> Number:
    if text.isdigit():
        return Number(NumberFamily.INTEGER if int(text) <= _BIGINT_MAX else NumberFamily.NUMERIC, len(text))
    if "e" in text.lower():
        return _DOUBLE
    whole, _, fraction = text.partition(".")
    return Number(NumberFamily.NUMERIC, len(whole) + len(fraction), len(fraction))


def _of_type(type_: SqlType | None) -> Number | None:
    if type_ is None or type_.enum:
        return None
    return Number(NumberFamily.NUMERIC, *type_.digits) if type_.kind is Kind.NUMERIC else _KINDS.get(type_.kind)


def is_open(node: exp.Cast) -> bool:
    """Whether it is one to a numeric without digits: those that its value has stay."""
    if not node.to.is_type(exp.DType.DECIMAL) or node.meta_get(WIDE):
        return False
    return tuple(int(part.name) for part in node.to.expressions) in ((), NUMERIC_DEFAULT)


def _cast(node: exp.Cast, inner: Number | None) -> Number | None:
    if inner is not None and _is_exact(inner):
        return replace(inner, family=NumberFamily.NUMERIC)
    if node.to.is_type(exp.DType.DECIMAL):
        digits = [int(part.name) for part in node.to.expressions] or list(NUMERIC_DEFAULT)
        return Number(NumberFamily.NUMERIC, digits[0], digits[1] if len(digits) > 1 else 0)
    return next((number for kind, number in _CASTS.items() if node.to.is_type(kind)), None)


def _sum(inner: Number | None) -> Number | None:
    if inner is None or inner.family in (NumberFamily.REAL, NumberFamily.DOUBLE):
        return inner
    if inner.family is NumberFamily.INTEGER:
        return _BIGINT if inner.digits < _BIGINT.digits else Number(NumberFamily.NUMERIC, NUMERIC_PRECISION_MAX)
    return Number(inner.family, NUMERIC_PRECISION_MAX, inner.scale, inner.exact)


def _wider(found: list[Number | None]) -> Number | None:
    known = [number for number in found if number is not None]
    if len(known) != len(found):
        return None
    families = {number.family for number in known}
    for family in (NumberFamily.DOUBLE, NumberFamily.REAL, NumberFamily.NUMERIC, NumberFamily.INTEGER):
        if family in families and families.isdisjoint(_MOMENTS):
            scale = max(n.scale for n in known)
            whole = max(n.digits - n.scale for n in known)
            return Number(family, min(whole + scale, NUMERIC_PRECISION_MAX), scale, all(n.exact for n in known))
    return None


def _first_of(first: Number | None, other: Number | None) -> Number | None:
    """The first, of the family that both are compared in."""
    together = _wider([first, other])
    return None if first is None or together is None else replace(first, family=together.family)


def _met(found: list[Number | None]) -> Number | None:
    met = _wider(found)
    scale = _meeting_scale([number for number in found if number is not None]) if met is not None else None
    return met if met is None or scale is None else replace(met, digits=NUMERIC_PRECISION_MAX, scale=scale)


def _meeting_scale(numbers: list[Number]) -> int | None:
    """How many digits behind their points are left to numerics whose values become of one type, if there is no room for
    all: those that are exact keep theirs, and a value that then has too many before its point is an error. None if
    there is room, or if they are none."""
    if NumberFamily.NUMERIC not in {number.family for number in numbers} or not all(map(_is_exact, numbers)):
        return None
    whole, scale = max(map(_whole_digits, numbers)), max(number.scale for number in numbers)
    if whole + scale <= NUMERIC_PRECISION_MAX:
        return None
    if all(number.exact for number in numbers):
        return scale
    fitting = [each for each in QUOTIENT_SCALES if each + whole <= NUMERIC_PRECISION_MAX]
    divided = min(scale, max(fitting, default=QUOTIENT_SCALE))
    return max(divided, *(number.scale for number in numbers if number.exact), 0)


def _whole_digits(number: Number) -> int:
    if number.family is NumberFamily.INTEGER:
        return next(digits for digits in _INTEGER_DIGITS if min(number.digits, NUMERIC_PRECISION_MAX) <= digits)
    return number.digits - number.scale


def _rounded(node: exp.Expr, inner: Number | None) -> Number | None:
    """Of an integer it is a double, unless the number of digits is given."""
    decimals = node.args.get("decimals")
    if inner is None or (decimals is None and inner.family is not NumberFamily.NUMERIC) or not _is_exact(inner):
        return inner and _DOUBLE
    known = 0 if decimals is None else _decimals(node)
    if known is None:
        return replace(inner, family=NumberFamily.NUMERIC)
    scale = min(known, NUMERIC_PRECISION_MAX)
    digits = min(_whole_digits(inner) + 1 + scale, NUMERIC_PRECISION_MAX)
    return Number(NumberFamily.NUMERIC, digits, scale, inner.exact or scale < inner.scale)


def _decimals(node: exp.Expr) -> int | None:
    """How many digits behind the point are asked for, if that is written out."""
    decimals = node.args.get("decimals")
    is_known = isinstance(decimals, exp.Literal) and decimals.name.isdigit()
    return min(int(decimals.name), NUMERIC_PRECISION_MAX) if decimals is not None and is_known else None


def _calculated(node: exp.Expr, left: Number | None, right: Number | None) -> Number | None:
    if left is None or right is None:
        return None
    together = _wider([left, right])
    if together is None:
        return _INTEGER if isinstance(node, exp.Sub) and left.family is right.family is NumberFamily.DATE else None
    if together.family is NumberFamily.REAL and left.family is not right.family:
        return _DOUBLE
    if together.family is NumberFamily.INTEGER:
        # Constants of few digits make one of more.
        return replace(together, digits=next(d for d in _INTEGER_DIGITS if together.digits <= d))
    if together.family is not NumberFamily.NUMERIC:
        return together
    if isinstance(node, exp.Div):
        return _quotient(left, right)
    if isinstance(node, exp.Mul):
        return _product(left, right)
    digits = min(together.digits + 1, NUMERIC_PRECISION_MAX)
    return Number(NumberFamily.NUMERIC, digits, together.scale, together.exact)


def _quotient(left: Number, right: Number) -> Number:
    """As many digits behind the point as leave room for the largest quotient; if that is not to be had, as usual."""
    whole = left.digits - left.scale + right.scale
    fitting = [scale for scale in QUOTIENT_SCALES if scale + whole <= NUMERIC_PRECISION_MAX]
    return Number(NumberFamily.NUMERIC, NUMERIC_PRECISION_MAX, max(fitting, default=QUOTIENT_SCALE), exact=False)


def _spread(node: exp.Expr, inner: Number | None) -> Number | None:
    """Squares must fit. A deviation has the digits of its variance."""
    if inner is None or not _is_exact(inner) or 2 * inner.scale > _SCALE_MAX:
        return inner and _DOUBLE
    is_variance = _SPREADS[type(node)] in ("variance", "wholevariance")
    return replace(_DEVIATION, scale=QUOTIENT_SCALE) if is_variance else _DEVIATION


def _product(left: Number, right: Number) -> Number:
    exact = left.exact and right.exact
    if left.scale + right.scale > _SCALE_MAX:
        return Number(NumberFamily.NUMERIC, *NUMERIC_DEFAULT) if exact else _quotient(left, right)
    digits = min(left.digits + right.digits, NUMERIC_PRECISION_MAX)
    return Number(NumberFamily.NUMERIC, digits, left.scale + right.scale, exact)


def _is_exact(number: Number) -> bool:
    """Whether an average of such numbers is a numeric."""
    return number.family in (NumberFamily.INTEGER, NumberFamily.NUMERIC)


# What is put before the parentheses around a difference and each of its operands.
Prefixes = tuple[str, str, str]
NO_PREFIXES: Final[Prefixes] = ("", "", "")
# Days between dates are a number, and DuckDB takes no time of the day from another.
_DIFFERENCES: Final[dict[NumberFamily, Prefixes]] = {
    NumberFamily.DATE: (AS_INTEGER, "", ""),
    NumberFamily.TIME: ("", AS_SPAN, AS_SPAN),
}


def is_calculated(node: exp.Expr) -> bool:
    """Whether the DuckDB text of a node depends on the kinds of its operands."""
    if isinstance(node, exp.Cast):
        return is_open(node)
    if type(node) in _SPREADS:
        # Of different values two may have the same square.
        return not isinstance(node.this, exp.Distinct)
    if isinstance(node, _ROUNDINGS):
        return node.args.get("decimals") is None or _decimals(node) is not None
    if isinstance(node, _MEETINGS):
        return _may_meet(meeting_parts(node))
    return isinstance(node, (exp.Mul, exp.Div, exp.Sub, exp.Avg))


def is_meeting(node: exp.Expr) -> bool:
    return isinstance(node, _MEETINGS)


def is_rounding(node: exp.Expr) -> bool:
    return isinstance(node, _ROUNDINGS)


def _may_meet(parts: list[exp.Expr]) -> bool:
    """Whether numerics of different digits may be among them, as far as they tell without the types of columns."""
    are_constants = all(isinstance(part, exp.Literal) for part in parts)
    are_others = any(
        isinstance(part, exp.Boolean) or (isinstance(part, exp.Literal) and part.is_string) for part in parts
    )
    return len(parts) > 1 and not are_constants and not are_others


def parts_of(aggregate: exp.Expr) -> tuple[exp.Expr, ...]:
    """The aggregates that an average or a deviation is made of."""
    total, count = exp.Sum(this=aggregate.this.copy()), exp.Count(this=aggregate.this.copy())
    if isinstance(aggregate, exp.Avg):
        return total, count
    squared = exp.Anonymous(this=MultipliedBy.SQUARE, expressions=[aggregate.this.copy()])
    return count, total, exp.Sum(this=squared)


def difference_prefixes(node: exp.Sub, column_type: ColumnType) -> Prefixes:
    left, right = infer_number(node.this, column_type), infer_number(node.expression, column_type)
    if left is None or right is None or left.family is not right.family:
        return NO_PREFIXES
    return _DIFFERENCES.get(left.family, NO_PREFIXES)


def numeric_type(node: exp.Cast, column_type: ColumnType) -> str:
    """DuckDB's type for a numeric without digits."""
    found = infer_number(node, column_type)
    digits = (found.digits, found.scale) if found is not None and found.digits else NUMERIC_DEFAULT
    return decimal_type(*digits)


def decimal_type(digits: int, scale: int) -> str:
    return f"DECIMAL({digits},{scale})"


def calculation(node: exp.Expr, column_type: ColumnType) -> str:
    """The function of DuckDB that a product or quotient is of its operands; and an average of what DuckDB has for it,
    the sum and the count."""
    if isinstance(node, _MEETINGS):
        met = [infer_number(part, column_type) for part in meeting_parts(node)]
        scale = _meeting_scale([number for number in met if number is not None]) if None not in met else None
        return "" if scale is None else numeric_name("common", scale)
    if isinstance(node, _ROUNDINGS):
        inner, decimals = infer_number(node.this, column_type), _decimals(node)
        if decimals is not None:
            # DuckDB leaves out digits that the number does not have.
            is_shorter = inner is not None and _is_exact(inner) and inner.scale < decimals
            return numeric_name("common", decimals) if is_shorter else ""
        is_whole = inner is not None and inner.family is NumberFamily.INTEGER
        return AS_DOUBLE if is_whole or (isinstance(node, exp.Sign) and inner == _DOUBLE) else ""
    if isinstance(node, exp.Avg):
        inner = infer_number(node.this, column_type)
        if inner is None or not _is_exact(inner):
            return FIRST_MACRO
        return numeric_name("average", inner.scale, 0, _quotient(inner, _BIGINT).scale)
    if type(node) in _SPREADS:
        inner = infer_number(node.this, column_type)
        found = _spread(node, inner)
        if inner is None or found is None or found.family is not NumberFamily.NUMERIC:
            return FIRST_MACRO
        return numeric_name(_SPREADS[type(node)], 0, inner.scale, 2 * inner.scale, found.scale)
    left, right = infer_number(node.this, column_type), infer_number(node.expression, column_type)
    plain = DividedBy.DUCKDB if isinstance(node, exp.Div) else MultipliedBy.DUCKDB
    if left is None or right is None:
        return plain
    families = {left.family, right.family}
    if NumberFamily.REAL in families and len(families) > 1 and families.isdisjoint(_MOMENTS):
        return DividedBy.DOUBLES if isinstance(node, exp.Div) else MultipliedBy.DOUBLES
    if NumberFamily.NUMERIC not in families or not families <= {NumberFamily.NUMERIC, NumberFamily.INTEGER}:
        return plain
    if isinstance(node, exp.Div):
        return numeric_name("quotient", left.scale, right.scale, _quotient(left, right).scale)
    return _multiplication(left, right)


def _multiplication(left: Number, right: Number) -> str:
    if left.scale + right.scale > _SCALE_MAX:
        if left.exact and right.exact:
            return MultipliedBy.FACTORS
        return numeric_name("product", left.scale, right.scale, _product(left, right).scale)
    short = max(left.digits, right.digits) <= _SHORT_DIGITS
    return MultipliedBy.WIDE if short and left.digits + right.digits > _SHORT_DIGITS else MultipliedBy.DUCKDB
