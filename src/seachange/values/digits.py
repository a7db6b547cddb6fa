"""Digits of a number, in total and after the decimal point; and sizes in bytes given as text."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from seachange import errors
from seachange.values.types import NUMERIC_PRECISION_MAX

_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,2})?", re.IGNORECASE)


def plain_number(value: Any) -> Decimal | None:
    """The number of a text or integer, with its trailing zeros; None if it is not a number, or has too many digits.

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
    """In total, and after the decimal point.

    >>> count_digits(Decimal("1.50")), count_digits(Decimal("0.001")), count_digits(Decimal("12e2"))
    ((3, 2), (3, 3), (4, 0))
    """
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    behind = max(-exponent, 0)
    return max(value.adjusted() + 1, 0) + behind or 1, behind


_SIZE = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")
_SIZE_CHARS_MAX: Final = 1_000
_SIZE_UNITS = ("bytes", "kb", "mb", "gb", "tb", "pb")


def read_size(text: str) -> int:
    """
    >>> read_size("1.5 kB"), read_size("1 GB"), read_size("12")
    (1536, 1073741824, 12)
    """
    # A number of very many digits takes time that grows with their square.
    found = _SIZE.fullmatch(text) if len(text) <= _SIZE_CHARS_MAX else None
    unit = found[2].lower() if found is not None else ""
    unit = "bytes" if unit in ("", "b") else unit
    if found is None or unit not in _SIZE_UNITS:
        raise errors.InvalidParameterValue(detail=f'invalid size: "{text[:_SIZE_CHARS_MAX]}"')
    size = int(Decimal(found[1]) * 1024 ** _SIZE_UNITS.index(unit))
    if not -(2**63) <= size < 2**63:
        raise errors.NumericValueOutOfRange(type="bigint", value=text)
    return size


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
