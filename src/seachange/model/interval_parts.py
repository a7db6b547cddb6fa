"""Intervals with their parts brought into order, on texts: what justify_days and its kin do.

>>> justify_days("35 days"), justify_hours("27:00:00"), justify_interval("1 month -01:00:00")
('1 mon 5 days', '1 day 03:00:00', '29 days 23:00:00')
"""

from __future__ import annotations

from seachange import errors
from seachange.model.interval import Interval, parse_interval

_DAY = 86_400_000_000
_MONTH_DAYS = 30


def justify_days(text: str) -> str:
    return str(_fold_days(parse_interval(text)))


def justify_hours(text: str) -> str:
    return str(_fold_hours(parse_interval(text)))


def justify_interval(text: str) -> str:
    """All parts of one sign."""
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
    return str(Interval(months, days, micros))


def divide(text: str, by: float) -> str:
    """What is left of months goes over into days, of which a month has thirty, and of days into time.

    >>> divide("1 mon 10 days", 4), divide("1 hour", 1.5)
    ('10 days', '00:40:00')
    """
    if not by:
        raise errors.DivisionByZero()
    value = parse_interval(text)
    months, days = value.months / by, value.days / by
    over_days = round((months - int(months)) * _MONTH_DAYS, 6)
    over_seconds = round((days - int(days) + over_days - int(over_days)) * 86_400, 6)
    carried = int(over_seconds / 86_400)
    micros = round(value.microseconds / by + (over_seconds - carried * 86_400) * 1_000_000)
    return str(Interval(int(months), int(days) + int(over_days) + carried, micros))


def _fold_hours(value: Interval) -> Interval:
    days, micros = _towards_zero(value.microseconds, _DAY)
    days += value.days
    if days > 0 and micros < 0:
        days, micros = days - 1, micros + _DAY
    elif days < 0 and micros > 0:
        days, micros = days + 1, micros - _DAY
    return Interval(value.months, days, micros)


def _fold_days(value: Interval) -> Interval:
    months, days = _towards_zero(value.days, _MONTH_DAYS)
    months += value.months
    if months > 0 and days < 0:
        months, days = months - 1, days + _MONTH_DAYS
    elif months < 0 and days > 0:
        months, days = months + 1, days - _MONTH_DAYS
    return Interval(months, days, value.microseconds)


def _towards_zero(number: int, by: int) -> tuple[int, int]:
    quotient, rest = divmod(abs(number), by)
    return (-quotient, -rest) if number < 0 else (quotient, rest)
