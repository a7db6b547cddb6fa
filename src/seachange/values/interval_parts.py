"""Normalised and divided intervals: justify_days and similar functions. They return the canonical text, since DuckDB
does not read everything that PostgreSQL prints.

>>> justify_days("35 days"), justify_hours("27:00:00")
('1 months 5 days 0 microseconds', '0 months 1 days 10800000000 microseconds')
"""

from __future__ import annotations

from seachange import errors
from seachange.values.interval import Interval, canonical_interval, parse_interval

_DAY = 86_400_000_000
_MONTH_DAYS = 30


def justify_days(text: str) -> str:
    return canonical_interval(_fold_days(parse_interval(text)))


def justify_hours(text: str) -> str:
    return canonical_interval(_fold_hours(parse_interval(text)))


def justify_interval(text: str) -> str:
    """All parts get the same sign.

    >>> justify_interval("1 month -01:00:00")
    '0 months 29 days 82800000000 microseconds'
    """
    value = _fold_days(_fold_hours(parse_interval(text)))
    months, days, micros = value
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + _MONTH_DAYS
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - _MONTH_DAYS
    if days > 0 and micros < 0:
        days, micros = days - 1, micros + _DAY
    elif days < 0 and micros > 0:
        days, micros = days + 1, micros - _DAY
    return canonical_interval(Interval(months, days, micros))


def divide(text: str, by: float) -> str:
    """The remainder of months becomes days (30 per month), that of days becomes time.

    >>> divide("1 mon 10 days", 4), divide("1 hour", 1.5)
    ('0 months 10 days 0 microseconds', '0 months 0 days 2400000000 microseconds')
    """
    if not by:
        raise errors.DivisionByZero()
    value = parse_interval(text)
    months, days = value.months / by, value.days / by
    over_days = round((months - int(months)) * _MONTH_DAYS, 6)
    over_seconds = round((days - int(days) + over_days - int(over_days)) * 86_400, 6)
    carried = int(over_seconds / 86_400)
    micros = round(value.microseconds / by + (over_seconds - carried * 86_400) * 1_000_000)
    return canonical_interval(Interval(int(months), int(days) + int(over_days) + carried, micros))


def _fold_hours(value: Interval) -> Interval:
    days, micros = _carry(value.days, value.microseconds, _DAY)
    return Interval(value.months, days, micros)


def _fold_days(value: Interval) -> Interval:
    months, days = _carry(value.months, value.days, _MONTH_DAYS)
    return Interval(months, days, value.microseconds)


def _carry(large: int, small: int, unit: int) -> tuple[int, int]:
    """Whole units of the smaller part carry over to the larger, and both get one sign."""
    whole, small = _towards_zero(small, unit)
    large += whole
    if large > 0 > small:
        return large - 1, small + unit
    if large < 0 < small:
        return large + 1, small - unit
    return large, small


def _towards_zero(number: int, by: int) -> tuple[int, int]:
    quotient, rest = divmod(abs(number), by)
    return (-quotient, -rest) if number < 0 else (quotient, rest)
