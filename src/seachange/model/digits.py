"""How many digits a number has, in all and behind its point."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from seachange.model.types import NUMERIC_PRECISION_MAX

_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,2})?", re.IGNORECASE)


def plain_number(value: Any) -> Decimal | None:
    """The number of a text or whole number, with the zeros at its end; None if it is none, or of too many digits.

    >>> plain_number("1.50"), plain_number("12e2"), plain_number(7), plain_number("x"), plain_number(1.5)
    (Decimal('1.50'), Decimal('1.2E+3'), Decimal('7'), None, None)
    """
    if isinstance(value, str):
        value = Decimal(value.strip()) if _NUMBER.fullmatch(value.strip()) else None
    elif isinstance(value, int) and not isinstance(value, bool):
        value = Decimal(value)
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    return value if count_digits(value)[0] <= NUMERIC_PRECISION_MAX else None


def count_digits(value: Decimal) -> tuple[int, int]:
    """In all, and behind the point.

    >>> count_digits(Decimal("1.50")), count_digits(Decimal("0.001")), count_digits(Decimal("12e2"))
    ((3, 2), (3, 3), (4, 0))
    """
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    behind = max(-exponent, 0)
    return max(value.adjusted() + 1, 0) + behind or 1, behind


def count_decimals(text: str) -> int:
    """
    >>> count_decimals("8.410"), count_decimals("8")
    (3, 0)
    """
    return len(text.partition(".")[2])


def count_needed_decimals(text: str) -> int:
    """
    >>> count_needed_decimals("8.4100"), count_needed_decimals("10")
    (2, 0)
    """
    return len(text.partition(".")[2].rstrip("0"))
