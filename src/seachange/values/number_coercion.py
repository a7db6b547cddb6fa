"""Assignment of Python values to numeric columns (see `coercion.py`)."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

from seachange import errors
from seachange.values.types import NUMERIC_PRECISION_MAX, Kind, SqlType

Coercer = Callable[[Any], Any]

INTEGER_BITS: dict[Kind, int] = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}

_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_OID_MASK = (1 << 32) - 1
_SPECIAL_FLOATS = {sign + word: float(sign + word) for sign in ("", "+", "-") for word in ("inf", "infinity", "nan")}
_float32 = struct.Struct("<f")
# The default context keeps 28 digits; a numeric may have 38.
_WIDE = Context(prec=100)


def integer_coercer(type_: SqlType) -> Coercer:
    limit = 1 << (INTEGER_BITS[type_.kind] - 1)

    def convert(value: Any) -> int:
        number = value if type(value) is int else _to_integer(type_, value)
        if not -limit <= number < limit:
            raise out_of_range(type_, value)
        return number

    return convert


def oid_coercer(type_: SqlType) -> Coercer:
    def convert(value: Any) -> int:
        number = value if type(value) is int else _to_integer(type_, value)
        # Negative numbers stand for unsigned 32-bit ones.
        if not -(1 << 31) <= number < 1 << 32:
            raise out_of_range(type_, value)
        return number & _OID_MASK

    return convert


def _to_integer(type_: SqlType, value: Any) -> int:
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            raise invalid(type_, value)
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise mismatch(type_, value)
    if isinstance(value, int):
        return int(value)
    if not math.isfinite(value):
        raise out_of_range(type_, value)
    # PostgreSQL rounds halves away from zero in numeric, to even in floating point.
    rounding = ROUND_HALF_UP if isinstance(value, Decimal) else ROUND_HALF_EVEN
    return int(Decimal(value).to_integral_value(rounding))


def floating_coercer(type_: SqlType) -> Coercer:
    single = type_.kind is Kind.REAL

    def convert(value: Any) -> float:
        number = value if type(value) is float else _to_float(type_, value)
        if not single or not math.isfinite(number):
            return number
        try:
            return float(_float32.unpack(_float32.pack(number))[0])
        except OverflowError:
            raise out_of_range(type_, value) from None

    return convert


def _to_float(type_: SqlType, value: Any) -> float:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _SPECIAL_FLOATS:
            return _SPECIAL_FLOATS[word]
        if not _NUMBER.fullmatch(value):
            raise invalid(type_, value)
    elif isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise mismatch(type_, value)
    try:
        number = float(value)
    except OverflowError:
        raise out_of_range(type_, value) from None
    if math.isinf(number) and not (isinstance(value, float | Decimal) and math.isinf(value)):
        raise out_of_range(type_, value)
    return number


def numeric_coercer(type_: SqlType) -> Coercer:
    precision, scale = type_.digits
    step = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)

    def convert(value: Any) -> Decimal:
        number = value if isinstance(value, Decimal) else _to_decimal(type_, value)
        # abs() would round to 28 digits.
        if not number.is_finite() or number.copy_abs() >= limit:
            raise out_of_range(type_, value)
        rounded = quantize(number, step)
        if not type_.precision and rounded != number:
            # The column declares no precision, so the value is out of range rather than rounded.
            raise out_of_range(type_, value)
        if rounded.copy_abs() >= limit:
            raise out_of_range(type_, value)
        return rounded if rounded else step - step

    return convert


def exact_numeric(value: Any) -> Decimal:
    """A number with all its digits, if a numeric can have as many; it is rounded when it is stored.

    >>> exact_numeric("-1.0050"), exact_numeric("1e3")
    (Decimal('-1.0050'), Decimal('1000'))
    """
    type_ = SqlType(Kind.NUMERIC)
    number = value if isinstance(value, Decimal) else _to_decimal(type_, value)
    # Trailing zeros may exceed the limit; a number that is too large or too small is not normalised.
    for shown in (number, number.normalize(_WIDE) if _is_moderate(number) else number):
        if _digit_count(shown) <= NUMERIC_PRECISION_MAX:
            # Written out, and without the sign of a negative zero.
            return Decimal(f"{shown if shown else shown.copy_abs():f}")
    raise out_of_range(type_, value)


def _is_moderate(number: Decimal) -> bool:
    return number.is_finite() and (not number or abs(number.adjusted()) <= NUMERIC_PRECISION_MAX)


def _digit_count(number: Decimal) -> float:
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return math.inf
    return max(len(digits) + exponent, 0) + max(-exponent, 0)


def quantize(number: Decimal, step: Decimal) -> Decimal:
    if number.as_tuple().exponent == step.as_tuple().exponent:
        return number
    return number.quantize(step, ROUND_HALF_UP, _WIDE)


def _to_decimal(type_: SqlType, value: Any) -> Decimal:
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise invalid(type_, value)
        return Decimal(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise mismatch(type_, value)
    # A float is the shortest decimal that reads back as it, as PostgreSQL's own cast.
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def invalid(type_: SqlType, value: object) -> errors.Error:
    return errors.InvalidTextRepresentation(type=type_, value=value)


def out_of_range(type_: SqlType, value: object) -> errors.Error:
    return errors.NumericValueOutOfRange(type=type_, value=value)


def mismatch(type_: SqlType, value: object) -> errors.Error:
    name = type(value).__name__
    return errors.DatatypeMismatch(detail=f"a value of Python type {name} cannot be stored as {type_}")
