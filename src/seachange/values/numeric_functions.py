"""Functions of numerics beyond the four operations, to the digits that PostgreSQL gives: of whole numbers, as
`values/quotients.py` has them.

**Invariant:** a result is computed with more digits than are kept of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, Overflow
from functools import partial
from typing import Final

from seachange import errors
from seachange.values.quotients import (
    DIGITS_MIN,
    GROUP,
    divide,
    first_group,
    multiply,
    quotient_digits,
    round_quotient,
    shown_digits,
    within,
)

_WIDE: Final = Context(prec=80, Emax=200, Emin=-200)
_LOG10_E: Final = 0.434294481903252


def root(whole: int, behind: int, scale: int) -> int:
    """
    >>> root(2, 0, 21)
    1414213562373095000000
    """
    if whole == 0:
        return 0
    weight = first_group(whole, behind)[1] * GROUP
    before = weight // 2 + 1 if weight >= 0 else 1 - (1 - weight) // 2
    return _kept(_decimal(whole, behind).sqrt(_WIDE), _digits(DIGITS_MIN - before, (whole, behind)), scale)


def exponential(whole: int, behind: int, scale: int) -> int:
    value = _decimal(whole, behind)
    try:
        found = value.exp(_WIDE)
    except Overflow:
        raise errors.NumericValueOutOfRange(type="numeric", value=f"exp({value})") from None
    return _kept(found, _digits(DIGITS_MIN - int(float(value) * _LOG10_E), (whole, behind)), scale)


def logarithm(whole: int, behind: int, scale: int) -> int:
    digits = _digits(DIGITS_MIN - _logarithm_weight(whole, behind), (whole, behind))
    return _kept(_decimal(whole, behind).ln(_WIDE), digits, scale)


def decimal_logarithm(whole: int, behind: int, scale: int) -> int:
    value = _decimal(whole, behind)
    found = value.log10(_WIDE)
    # How many digits are before the point of the quotient of two natural logarithms.
    weight = _logarithm_weight(whole, behind) - _logarithm_weight(10, 0)
    return _kept(found, _digits(DIGITS_MIN - weight, (whole, behind)), scale)


def power(whole: int, exponent: int, behind: int, exponent_behind: int, scale: int) -> int:
    base, times = _decimal(whole, behind), _decimal(exponent, exponent_behind)
    estimate = float(times) * math.log10(abs(base)) if base else 0.0
    if base < 0 and times != times.to_integral_value():
        raise errors.InvalidArgumentOfPower(detail="a negative number raised to a non-integer power has no real value")
    try:
        found = _WIDE.power(base, times) if base or times else Decimal(1)
    except Overflow:
        raise errors.NumericValueOutOfRange(type="numeric", value=f"{base} ^ {times}") from None
    digits = _digits(DIGITS_MIN - int(estimate), (whole, behind), (exponent, exponent_behind))
    return _kept(found, digits, scale)


def spread(
    spared: int, is_root: bool, count: int, total: int, squares: int, _: int, __: int, behind: int, scale: int
) -> int:
    """Variance or standard deviation, by count, sum and sum of squares; `spared` is 1 for that of a sample."""
    dividend, divisor = count * squares - total * total, count * (count - spared)
    if dividend <= 0:
        return 0
    digits = min(quotient_digits(dividend, divisor, behind, 0), scale)
    found = round_quotient(dividend * 10**digits, divisor * 10**behind)
    if is_root:
        found = round_quotient(math.isqrt(found * 10**digits * 100), 10)
    return within(found * 10 ** (scale - digits))


def _decimal(whole: int, behind: int) -> Decimal:
    return Decimal(whole).scaleb(-behind, _WIDE)


def _digits(wanted: int, *operands: tuple[int, int]) -> int:
    """No fewer than its operands show."""
    wanted = max(wanted, 0)
    return max(wanted, *(shown_digits(whole, behind, wanted) for whole, behind in operands))


def _kept(value: Decimal, digits: int, scale: int) -> int:
    digits = min(digits, scale)
    rounded = int(value.scaleb(digits, _WIDE).to_integral_value(ROUND_HALF_UP))
    return within(rounded * 10 ** (scale - digits))


def _logarithm_weight(whole: int, behind: int) -> int:
    """About how many digits a natural logarithm has before its point; fewer than none, if it is small."""
    value = _decimal(whole, behind)
    if Decimal("0.9") <= value <= Decimal("1.1"):
        distance = abs(value - 1)
        if not distance:
            return 0
        exponent = distance.as_tuple().exponent
        assert isinstance(exponent, int)
        first, weight = first_group(int(distance.scaleb(-exponent, _WIDE)), -exponent)
        return weight * GROUP + int(math.log10(first))
    return int(math.log10(abs(math.log(value))))


# By the names that their functions in DuckDB have.
CALCULATIONS: Final[dict[str, Callable[..., int]]] = {
    "quotient": divide,
    "product": multiply,
    "average": divide,
    "root": root,
    "exponential": exponential,
    "logarithm": logarithm,
    "tenlogarithm": decimal_logarithm,
    "power": power,
    "variance": partial(spread, 1, False),
    "deviation": partial(spread, 1, True),
    "wholevariance": partial(spread, 0, False),
    "wholedeviation": partial(spread, 0, True),
}
