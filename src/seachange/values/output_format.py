"""Output format: values as clients get them, where rows store them differently, and as PostgreSQL's text."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from seachange import errors
from seachange.values.array_text import show_array
from seachange.values.interval import read_canonical
from seachange.values.network import as_given, read_address, read_network, show_address, show_network
from seachange.values.quotients import show_quotient
from seachange.values.timezone import UTC, find_zone
from seachange.values.types import Kind, SqlType

Shower = Callable[[Any], Any]

_WIDE = Context(prec=100)
_SINGLE_BITS = 24
_SINGLE = struct.Struct("<f")
_HELD_OTHERWISE = frozenset({Kind.CHAR, Kind.INTERVAL, Kind.TIMESTAMPTZ, Kind.INET, Kind.CIDR})


def is_shown(type_: SqlType | None) -> bool:
    """Whether clients get another value than rows store."""
    if type_ is None:
        return False
    if type_.element is not None:
        return type_.element.kind is Kind.UUID or is_shown(type_.element)
    return type_.kind in _HELD_OTHERWISE or (type_.kind is Kind.NUMERIC and not type_.precision)


@lru_cache(maxsize=1024)
def shower(type_: SqlType, zone: str) -> Shower | None:
    """The conversion from the stored value to the client's; None if they are equal."""
    if not is_shown(type_):
        return None
    if type_.element is not None:
        one = UUID if type_.element.kind is Kind.UUID else shower(type_.element, zone)
        if one is None:
            return None
        return lambda value: None if value is None else [None if e is None else one(e) for e in value]
    match type_.kind:
        case Kind.CHAR:
            return lambda value: None if value is None else value.ljust(type_.length)
        case Kind.INTERVAL:
            return lambda value: read_canonical(value) if isinstance(value, str) else value
        case Kind.INET | Kind.CIDR:
            return lambda value: as_given(type_, value) if isinstance(value, bytes) else value
        case Kind.NUMERIC:
            show = show_quotient if type_.scale else without_zeros
            return lambda value: None if value is None else show(value)
        case _:
            if zone == UTC:
                return None
            info = find_zone(zone)
            return lambda value: _in_zone(value, info) if isinstance(value, dt.datetime) else value


def _in_zone(moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    try:
        return moment.astimezone(zone)
    except OverflowError:
        raise errors.DatetimeFieldOverflow(type="timestamp with time zone", value=str(moment)) from None


def without_zeros(value: Decimal) -> Decimal:
    """Without trailing zeros: a numeric without a declared scale shows only the digits that it needs."""
    normal = value.normalize(_WIDE)
    return normal if normal.as_tuple().exponent <= 0 else normal.quantize(Decimal(1), context=_WIDE)  # type: ignore[operator]


def show_text(type_: SqlType, value: Any) -> str | None:
    """PostgreSQL's text of a client's value."""
    if value is None:
        return None
    if type_.element is not None:
        return show_array([show_text(type_.element, element) for element in value])
    return _TEXTS.get(type_.kind, str)(value)


def show_held(type_: SqlType, value: Any, zone: str = UTC) -> str | None:
    """PostgreSQL's text of a stored value."""
    show = shower(type_, zone)
    return show_text(type_, value if show is None else show(value))


def show_float(value: float, digits: int = 17) -> str:
    """The shortest text that reads back as the same value; the exponent has two digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = _shortest_double(value) if digits == 17 else _shortest_single(value)
    mantissa, _, exponent = text.partition("e")
    number = int(exponent) if exponent else _exponent(mantissa)
    if -5 < number < (15 if digits == 17 else 6):
        return f"{Decimal(text):f}".removesuffix(".0")
    sign = "-" if value < 0 else ""
    kept = Decimal(text).as_tuple().digits
    plain = "".join(map(str, kept)).rstrip("0")
    behind = f".{plain[1:]}" if len(plain) > 1 else ""
    return f"{sign}{plain[0]}{behind}e{'-' if number < 0 else '+'}{abs(number):02d}"


def _exponent(mantissa: str) -> int:
    return Decimal(mantissa).adjusted() if Decimal(mantissa) else 0


def _shortest_double(value: float) -> str:
    text = repr(value)
    if not _is_halfway(text, value, math.ulp(value)):
        return text
    longer = f"{value:.15e}"
    return longer if float(longer) == value and not _is_halfway(longer, value, math.ulp(value)) else f"{value:.16e}"


def _shortest_single(value: float) -> str:
    spacing = 2.0 ** (math.frexp(value)[1] - _SINGLE_BITS)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if _reads_as(text, value) and not _is_halfway(text, value, spacing):
            return repr(float(text))
    return repr(value)


def _reads_as(text: str, value: float) -> bool:
    try:
        return bool(_SINGLE.unpack(_SINGLE.pack(float(text)))[0] == value)
    except OverflowError:
        return False


def _is_halfway(text: str, value: float, spacing: float) -> bool:
    """Whether the text lies halfway to the next value: it reads back as this one, but PostgreSQL prints another digit.
    This happens only where values are more than one apart."""
    return spacing > 1 and abs(Decimal(text) - Decimal(value)) * 2 == Decimal(spacing)


def show_moment(value: dt.datetime) -> str:
    text = show_clock(value.replace(tzinfo=None))
    if value.tzinfo is None:
        return text
    offset = value.utcoffset() or dt.timedelta()
    minutes, seconds = divmod(abs(int(offset.total_seconds())), 60)
    sign = "-" if offset < dt.timedelta() else "+"
    shown = f"{sign}{minutes // 60:02d}"
    if minutes % 60 or seconds:
        shown += f":{minutes % 60:02d}"
    return text + shown + (f":{seconds:02d}" if seconds else "")


def show_clock(value: dt.datetime | dt.time) -> str:
    """With only as many fractional digits as needed."""
    text = value.isoformat(sep=" ") if isinstance(value, dt.datetime) else value.isoformat()
    return text.rstrip("0") if value.microsecond else text


_TEXTS: dict[Kind, Callable[[Any], str]] = {
    Kind.BOOLEAN: lambda value: "t" if value else "f",
    Kind.REAL: lambda value: show_float(value, 9),
    Kind.DOUBLE: show_float,
    Kind.NUMERIC: lambda value: f"{value:f}",
    Kind.BYTEA: lambda value: "\\x" + value.hex(),
    Kind.DATE: dt.date.isoformat,
    Kind.TIME: show_clock,
    Kind.TIMESTAMP: show_moment,
    Kind.TIMESTAMPTZ: show_moment,
    Kind.INET: lambda value: show_address(read_address(str(value))),
    Kind.CIDR: lambda value: show_network(read_network(str(value))),
}
