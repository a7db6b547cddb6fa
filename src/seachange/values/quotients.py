"""Quotients, products and variances of numerics as in PostgreSQL: exact, with a number of digits that depends on the
values.

A numeric here is an integer and its number of digits after the decimal point, as in DuckDB's and Arrow's decimals. How
many digits PostgreSQL shows, including trailing zeros, depends on the position of the first digit.

**Invariant:** a result is the exact one, rounded as PostgreSQL rounds it, or an error.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from seachange import errors
from seachange.values.types import NUMERIC_DEFAULT, NUMERIC_PRECISION_MAX, QUOTIENT_SCALES

# The minimum number of significant digits of a quotient.
DIGITS_MIN: Final = 16
# PostgreSQL stores groups of four digits, and the first group decides.
GROUP: Final = 4
_GROUPS: Final = tuple(10 ** (GROUP * count) for count in range(40))
_POWERS: Final = tuple(10**count for count in range(160))
_WIDE: Final = Context(prec=100)
_LIMIT: Final = 10**NUMERIC_PRECISION_MAX


def divide(dividend: int, divisor: int, behind: int, divisor_behind: int, scale: int) -> int:
    """The quotient, with `scale` digits after the decimal point.

    >>> divide(100, 3, 1, 0, 21), divide(10, 3, 0, 0, 21), divide(-1, 8, 0, 0, 21)
    (3333333333333333300000, 3333333333333333300000, -125000000000000000000)
    """
    if divisor == 0:
        raise errors.DivisionByZero()
    if dividend == 0:
        return 0
    digits = min(quotient_digits(dividend, divisor, behind, divisor_behind), scale)
    shift = digits - behind + divisor_behind
    if shift >= 0:
        found = round_quotient(dividend * _POWERS[shift], divisor)
    else:
        found = round_quotient(dividend, divisor * _POWERS[-shift])
    return within(found * _POWERS[scale - digits])


def multiply(one: int, other: int, behind: int, other_behind: int, scale: int) -> int:
    """The product, rounded to `scale` digits after the decimal point.

    >>> multiply(15, 25, 1, 1, 1), multiply(15, 25, 1, 1, 3)
    (38, 3750)
    """
    drop = behind + other_behind - scale
    return within(round_quotient(one * other, _POWERS[drop]) if drop >= 0 else one * other * _POWERS[-drop])


def spread(
    spared: int, is_root: bool, count: int, total: int, squares: int, _: int, __: int, behind: int, scale: int
) -> int:
    """Variance or standard deviation, from count, sum and sum of squares; `spared` is 1 for a sample."""
    dividend, divisor = count * squares - total * total, count * (count - spared)
    if dividend <= 0:
        return 0
    digits = min(quotient_digits(dividend, divisor, behind, 0), scale)
    found = round_quotient(dividend * 10**digits, divisor * 10**behind)
    if is_root:
        found = round_quotient(math.isqrt(found * 10**digits * 100), 10)
    return within(found * 10 ** (scale - digits))


def show_quotient(value: Decimal) -> Decimal:
    """With PostgreSQL's trailing zeros. If the first group of digits is 1, PostgreSQL may show four more, depending on
    the operands, which are no longer known.

    >>> show_quotient(Decimal("0.3333333333333333333"))
    Decimal('0.3333333333333333333')
    >>> show_quotient(Decimal("2.500")), show_quotient(Decimal("12345")), show_quotient(Decimal(1))
    (Decimal('2.5000000000000000'), Decimal('12345.000000000000'), Decimal('1.00000000000000000000'))
    """
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    whole = int(value.scaleb(max(-exponent, 0), _WIDE))
    digits = _shown_of_quotient(abs(whole), max(-exponent, 0))
    if -exponent == min(QUOTIENT_SCALES):
        # Digits that were not computed are not invented.
        digits = min(digits, -exponent)
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE)


def _shown_of_quotient(whole: int, behind: int) -> int:
    if not whole:
        return DIGITS_MIN + GROUP
    while behind > 0 and whole % 10 == 0:
        whole, behind = whole // 10, behind - 1
    _first, weight = first_group(whole, behind)
    is_power = whole * _POWERS[-behind % GROUP] in _GROUPS
    return max(DIGITS_MIN - GROUP * (weight - is_power), behind, 0)


def quotient_digits(dividend: int, divisor: int, behind: int, divisor_behind: int) -> int:
    """The number of digits after the decimal point of a quotient."""
    first, weight = first_group(abs(dividend), behind)
    divisor_first, divisor_weight = first_group(abs(divisor), divisor_behind)
    weight -= divisor_weight + (first <= divisor_first)
    digits = max(DIGITS_MIN - GROUP * weight, 0)
    return max(digits, shown_digits(dividend, behind, digits), shown_digits(divisor, divisor_behind, digits))


def first_group(whole: int, behind: int) -> tuple[int, int]:
    """The first group of digits, and the number of groups between it and the decimal point."""
    aligned = whole * _POWERS[-behind % GROUP]
    place = bisect_right(_GROUPS, aligned) - 1
    return aligned // _GROUPS[place], place + -behind // GROUP


def shown_digits(whole: int, behind: int, known: int) -> int:
    """The number of digits that an operand shows after its decimal point, if more than `known`: without declared
    digits, as many as it needs."""
    if behind < NUMERIC_DEFAULT[1]:
        return behind
    if behind in QUOTIENT_SCALES:
        return _shown_of_quotient(abs(whole), behind)
    while behind > known and whole % 10 == 0:
        whole, behind = whole // 10, behind - 1
    return behind


def round_quotient(dividend: int, divisor: int) -> int:
    """Halves away from zero."""
    found = (2 * abs(dividend) + abs(divisor)) // (2 * abs(divisor))
    return found if (dividend < 0) is (divisor < 0) else -found


def within(value: int) -> int:
    if abs(value) >= _LIMIT:
        found = f"a result that has more than {NUMERIC_PRECISION_MAX} digits; cast an operand to double precision"
        raise errors.NumericValueOutOfRange(type="numeric", value=found)
    return value
