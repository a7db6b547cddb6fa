"""Intervals: months, days and microseconds, which PostgreSQL keeps separate since none is a fixed number of another.

A row stores an interval as its canonical text, which DuckDB reads as well.

>>> interval = parse_interval("1 year 2 mons -3 days +04:05:06.5")
>>> interval
Interval(months=14, days=-3, microseconds=14706500000)
>>> canonical_interval(interval)
'14 months -3 days 14706500000 microseconds'
>>> str(interval)
'1 year 2 mons -3 days +04:05:06.5'
>>> justify_days("35 days"), justify_hours("27:00:00")
('1 months 5 days 0 microseconds', '0 months 1 days 10800000000 microseconds')
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final, NamedTuple

from seachange import errors
from seachange.values.types import Kind, SqlType

INTERVAL = SqlType(Kind.INTERVAL)

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_MONTH_DAYS = 30
_INT32 = 1 << 31
_INT64 = 1 << 63


class Interval(NamedTuple):
    months: int = 0
    days: int = 0
    microseconds: int = 0

    def __str__(self) -> str:
        """As PostgreSQL prints it."""
        years, months = _divide(self.months, 12)
        parts: list[str] = []
        negative = False
        for number, unit in ((years, "year"), (months, "mon"), (self.days, "day")):
            if number:
                sign = "+" if negative and number > 0 else ""
                parts.append(f"{sign}{number} {unit}{'' if number == 1 else 's'}")
                negative = number < 0
        if self.microseconds or not parts:
            parts.append(_show_time(self.microseconds, negative))
        return " ".join(parts)

    @property
    def timedelta(self) -> dt.timedelta:
        """With a month as thirty days."""
        return dt.timedelta(days=self.months * _MONTH_DAYS + self.days, microseconds=self.microseconds)


def _divide(number: int, by: int) -> tuple[int, int]:
    """Towards zero."""
    quotient, rest = divmod(abs(number), by)
    return (-quotient, -rest) if number < 0 else (quotient, rest)


def _show_time(microseconds: int, signed: bool) -> str:
    sign = "-" if microseconds < 0 else "+" if signed else ""
    seconds, fraction = divmod(abs(microseconds), _SECOND)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    behind = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}{behind}"


def canonical_interval(value: Interval) -> str:
    return f"{value.months} months {value.days} days {value.microseconds} microseconds"


def read_canonical(text: str) -> Interval:
    words = text.split()
    return Interval(int(words[0]), int(words[2]), int(words[4]))


# Each unit as (months, days, microseconds); a fraction carries over to the smaller unit.
_UNITS: dict[str, tuple[int, int, int]] = {
    **dict.fromkeys(("millennium", "millennia", "millenniums", "mil", "mils"), (12_000, 0, 0)),
    **dict.fromkeys(("century", "centuries", "cent", "c"), (1_200, 0, 0)),
    **dict.fromkeys(("decade", "decades", "dec", "decs"), (120, 0, 0)),
    **dict.fromkeys(("year", "years", "yr", "yrs", "y"), (12, 0, 0)),
    **dict.fromkeys(("month", "months", "mon", "mons"), (1, 0, 0)),
    **dict.fromkeys(("week", "weeks", "w"), (0, 7, 0)),
    **dict.fromkeys(("day", "days", "d"), (0, 1, 0)),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), (0, 0, 3600 * _SECOND)),
    **dict.fromkeys(("minute", "minutes", "min", "mins", "m"), (0, 0, 60 * _SECOND)),
    **dict.fromkeys(("second", "seconds", "sec", "secs", "s", ""), (0, 0, _SECOND)),
    **dict.fromkeys(("millisecond", "milliseconds", "msec", "msecs", "ms"), (0, 0, 1000)),
    **dict.fromkeys(("microsecond", "microseconds", "usec", "usecs", "us"), (0, 0, 1)),
}
_TERM = re.compile(
    r"\s*(?:(?P<sign>[+-])?(?P<hours>\d+):(?P<minutes>\d+)(?::(?P<seconds>\d+(?:\.\d*)?)|(?P<fraction>\.\d*))?"
    r"|(?P<months>[+-]?\d+-\d+)(?![\d-])"
    r"|(?P<number>(?:[+-]\s*)?(?:\d+\.?\d*|\.\d+))\s*(?P<unit>[a-zA-Z]*))(?=[\s+-]|$|\d)"
)
_CLOCK = re.compile(r"\s*[+-]?\d+:")
_ISO = re.compile(r"P(?P<date>(?:-?[\d.]+[YMWD])*)(?:T(?P<time>(?:-?[\d.]+[HMS])+))?", re.IGNORECASE)
_ISO_TERM = re.compile(r"(-?[\d.]+)([YMWDHS])", re.IGNORECASE)
_ISO_DATE = {"y": "year", "m": "month", "w": "week", "d": "day"}
_ISO_TIME = {"h": "hour", "m": "minute", "s": "second"}


# What of an interval is kept, by its smallest field: whole multiples of so many months, days and microseconds.
_SMALLEST: Final = {
    "year": (12, 0, 0),
    "month": (1, 0, 0),
    "day": (1, 1, 0),
    "hour": (1, 1, 3600 * _SECOND),
    "minute": (1, 1, 60 * _SECOND),
    "second": (1, 1, 1),
}


def parse_fields(text: str, fields: Sequence[str], digits: int | None = None) -> Interval:
    """interval 'text' FIELD TO FIELD: what has no unit counts in the smallest field, and what is smaller is cut off.

    >>> str(parse_fields("1 2", ["day", "hour"])), str(parse_fields("1 2:03", ["minute", "second"]))
    ('1 day 02:00:00', '1 day 00:02:03')
    """
    found = parse_interval(text, fields)
    if digits is not None and digits < 6:
        unit = 10 ** (6 - digits)
        found = found._replace(microseconds=round(Decimal(found.microseconds) / unit) * unit)
    return Interval(*map(_whole_multiple, found, _SMALLEST[fields[-1]]))


def _whole_multiple(number: int, unit: int) -> int:
    """Towards zero."""
    return (abs(number) // unit * unit) * (-1 if number < 0 else 1) if unit else 0


def parse_interval(text: str, fields: Sequence[str] = ()) -> Interval:
    """PostgreSQL's formats: units, time of day, years-months, ISO 8601 with letters; `ago` at the end. `fields` are
    those of a constant that names them."""
    body = text.strip()
    if _ISO.fullmatch(body) and len(body) > 1:
        return _checked(_parse_iso(body), text)
    body = body.removeprefix("@").strip()
    ago = re.fullmatch(r"(.*\S)\s+ago", body, re.IGNORECASE | re.DOTALL)
    terms = _terms(ago.group(1) if ago else body, text, fields)
    total = _sum(terms)
    return _checked([-part for part in total] if ago else total, text)


def _parse_iso(text: str) -> list[Decimal]:
    match = _ISO.fullmatch(text)
    assert match is not None
    terms = []
    for part, units in ((match["date"], _ISO_DATE), (match["time"] or "", _ISO_TIME)):
        terms += [_scaled(Decimal(n), _UNITS[units[u.lower()]]) for n, u in _ISO_TERM.findall(part)]
    return _sum(terms)


def _terms(body: str, text: str, fields: Sequence[str]) -> list[list[Decimal]]:
    terms, position = [], 0
    unit = _UNITS[fields[-1] if fields else ""]
    counts_minutes = list(fields) == ["minute", "second"]
    while position < len(body):
        match = _TERM.match(body, position)
        if match is None or not match.group().strip():
            raise errors.InvalidDatetimeFormat(type=INTERVAL, value=text)
        is_bare = match["number"] is not None and not match["unit"]
        # A number before a time of day, or before hours, is a number of days.
        behind = body[match.end() :].strip()
        counts_days = is_bare and (_CLOCK.match(behind) or (behind.isdigit() and fields[-1:] == ["hour"]))
        if is_bare:
            terms.append(_scaled(_number(match), _UNITS["day"] if counts_days else unit))
        else:
            terms.append(_term(match, text, counts_minutes))
        position = match.end()
        while position < len(body) and body[position].isspace():
            position += 1
    if not terms:
        raise errors.InvalidDatetimeFormat(type=INTERVAL, value=text)
    return terms


def _term(match: re.Match[str], text: str, counts_minutes: bool) -> list[Decimal]:
    if match["hours"] is not None:
        # With a fraction, or in a field of minutes, two numbers are minutes and seconds.
        if match["fraction"] is not None or (counts_minutes and match["seconds"] is None):
            seconds = int(match["hours"]) * 60 + Decimal(match["minutes"] + (match["fraction"] or ""))
            return [Decimal(0), Decimal(0), (-seconds if match["sign"] == "-" else seconds) * _SECOND]
        if int(match["minutes"]) > 59 or Decimal(match["seconds"] or 0) >= 60:
            raise errors.DatetimeFieldOverflow(type=INTERVAL, value=text)
        seconds = (int(match["hours"]) * 60 + int(match["minutes"])) * 60 + Decimal(match["seconds"] or 0)
        return [Decimal(0), Decimal(0), (-seconds if match["sign"] == "-" else seconds) * _SECOND]
    if match["months"] is not None:
        years, months = match["months"].lstrip("+-").split("-")
        total = int(years) * 12 + int(months)
        return [Decimal(-total if match["months"].startswith("-") else total), Decimal(0), Decimal(0)]
    unit = _UNITS.get(match["unit"].lower())
    if unit is None:
        raise errors.InvalidDatetimeFormat(type=INTERVAL, value=text)
    return _scaled(_number(match), unit)


def _number(match: re.Match[str]) -> Decimal:
    """The sign may be separate."""
    return Decimal("".join(match["number"].split()))


def _scaled(number: Decimal, unit: tuple[int, int, int]) -> list[Decimal]:
    """A fraction of a month becomes days (30 per month), one of a day becomes time; years are truncated to months."""
    months, days, microseconds = (number * part for part in unit)
    if unit[0]:
        whole = int(months)
        if unit[0] == 1:
            days += (months - whole) * _MONTH_DAYS
        months = Decimal(whole)
    whole = int(days)
    return [months, Decimal(whole), microseconds + (days - whole) * _DAY]


def _sum(terms: list[list[Decimal]]) -> list[Decimal]:
    return [sum(column, Decimal(0)) for column in zip(*terms, strict=True)]


def _checked(parts: list[Decimal], text: str) -> Interval:
    months, days, microseconds = (int(part.to_integral_value(ROUND_HALF_EVEN)) for part in parts)
    # DuckDB reads no number below -2^63 + 1.
    if not (-_INT32 <= months < _INT32 and -_INT32 <= days < _INT32 and -_INT64 < microseconds < _INT64):
        raise errors.DatetimeFieldOverflow(type=INTERVAL, value=text)
    return Interval(months, days, microseconds)


def from_timedelta(value: dt.timedelta) -> Interval:
    return Interval(0, value.days, value.seconds * _SECOND + value.microseconds)


# Functions that normalise and divide intervals. They return the canonical text, since DuckDB does not read everything
# that PostgreSQL prints.
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
    whole, small = _divide(small, unit)
    large += whole
    if large > 0 > small:
        return large - 1, small + unit
    if large < 0 < small:
        return large + 1, small - unit
    return large, small
