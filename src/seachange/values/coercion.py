"""Assignment of Python values to columns: each SQL type's own values, or an error with PostgreSQL's code.

**Invariant:** what `coercer(type)` returns is canonical: equal values of one type are equal Python values, of the one
Python type that the storage of that SQL type expects.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from seachange import errors
from seachange.values import network, number_coercion
from seachange.values.array_text import parse_array
from seachange.values.interval import Interval, canonical_interval, from_timedelta, parse_interval
from seachange.values.json_text import normalize_json, parse_json, show_json
from seachange.values.output_format import show_clock, show_moment
from seachange.values.timezone import UTC, find_zone, session_zone
from seachange.values.types import NAME_BYTES_MAX, QUOTIENT_SCALES, Kind, SqlType

_LOOSE_DATE = re.compile(r"\s*([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(.*)", re.DOTALL)
_BYTEA_ESCAPE = re.compile(r"\\(\\|[0-3][0-7]{2})|[^\\]", re.DOTALL)
_TRUE = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY_MICROSECONDS = 86_400_000_000


def coerce(type_: SqlType, value: Any) -> Any:
    return coercer(type_)(value)


def coercer(type_: SqlType) -> number_coercion.Coercer:
    """The assignment conversion to a type: NULL stays NULL. Timestamps are read in the zone of the session."""
    return _coercer(type_, session_zone() if type_.kind in _ZONED else UTC)


@lru_cache(maxsize=1024)
def _coercer(type_: SqlType, zone: str) -> number_coercion.Coercer:
    builder = _ZONED.get(type_.kind)
    convert = builder(type_, find_zone(zone)) if builder is not None else _BUILDERS[type_.kind](type_)

    def coerce_value(value: Any) -> Any:
        return None if value is None else convert(value)

    return coerce_value


def _boolean(type_: SqlType) -> number_coercion.Coercer:
    def convert(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if not isinstance(value, str):
            raise number_coercion.mismatch(type_, value)
        word = value.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise number_coercion.invalid(type_, value)

    return convert


def computed_coercer(type_: SqlType) -> number_coercion.Coercer:
    """The same for a computed value: a quotient has more digits than a numeric without declared digits stores, and was
    rounded in any case."""
    convert = coercer(type_)
    if type_.kind is not Kind.NUMERIC or type_.precision:
        return convert
    step = Decimal(1).scaleb(-type_.digits[1])

    def convert_rounded(value: Any) -> Any:
        is_quotient = isinstance(value, Decimal) and -int(value.as_tuple().exponent) in QUOTIENT_SCALES
        return convert(number_coercion.quantize(value, step) if is_quotient else value)

    return convert_rounded


def check_characters(text: str) -> None:
    """Raises for a string that is not valid text: it can neither be stored nor passed to an engine."""
    if "\x00" in text:
        raise errors.CharacterNotInRepertoire()
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise errors.UnpairedSurrogate() from None


def _text(type_: SqlType, zone: dt.tzinfo) -> number_coercion.Coercer:
    length = type_.length

    def convert(value: Any) -> str:
        text = value if type(value) is str else _to_text(type_, value, zone)
        check_characters(text)
        if length and len(text) > length:
            if text[length:].strip(" "):
                raise errors.StringTooLong(type=type_)
            return text[:length]
        return text

    return convert


def _char(type_: SqlType, zone: dt.tzinfo) -> number_coercion.Coercer:
    """Without trailing spaces, which are insignificant: they are added when the value is displayed."""
    convert = _text(type_, zone)
    return lambda value: convert(value).rstrip(" ")


def _name(type_: SqlType, zone: dt.tzinfo) -> number_coercion.Coercer:
    convert = _text(type_, zone)
    return lambda value: convert(value).encode()[:NAME_BYTES_MAX].decode(errors="ignore")


def _to_text(type_: SqlType, value: Any, zone: dt.tzinfo) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return show_moment(value if value.tzinfo is None else value.astimezone(zone))
    if isinstance(value, dt.time):
        return show_clock(value)
    if isinstance(value, str | int | Decimal | UUID | Interval):
        return str(value)
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, dt.date):
        return value.isoformat()
    raise number_coercion.mismatch(type_, value)


def _bytea(type_: SqlType) -> number_coercion.Coercer:
    def convert(value: Any) -> bytes:
        if isinstance(value, str):
            return _parse_bytea(type_, value)
        if not isinstance(value, bytes | bytearray | memoryview):
            raise number_coercion.mismatch(type_, value)
        return bytes(value)

    return convert


def _parse_bytea(type_: SqlType, text: str) -> bytes:
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise errors.InvalidParameterValue(detail=f'invalid hexadecimal data: "{text}"') from None
    pieces, end = [], 0
    for match in _BYTEA_ESCAPE.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        escape = match.group(1)
        if escape is None:
            pieces.append(match.group().encode())
        else:
            pieces.append(b"\\" if escape == "\\" else bytes([int(escape, 8)]))
    if end != len(text):
        raise number_coercion.invalid(type_, text)
    return b"".join(pieces)


def _pad_date(text: str) -> str:
    """ISO form with two-digit months and days, which PostgreSQL does not insist on."""
    match = _LOOSE_DATE.fullmatch(text)
    if match is None:
        return text.strip()
    year, month, day, rest = match.groups()
    return f"{year}-{month:0>2}-{day:0>2}{rest.rstrip()}"


def _parse_time(parse: Callable[[str], Any], type_: SqlType, text: str) -> Any:
    try:
        return parse(_pad_date(text))
    except ValueError:
        looks_right = any(character.isdigit() for character in text)
        if looks_right and (_LOOSE_DATE.fullmatch(text) or ":" in text):
            raise errors.DatetimeFieldOverflow(type=type_, value=text) from None
        raise errors.InvalidDatetimeFormat(type=type_, value=text) from None


def _local(value: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    return value if value.tzinfo is None else value.astimezone(zone).replace(tzinfo=None)


def _date(type_: SqlType, zone: dt.tzinfo) -> number_coercion.Coercer:
    def convert(value: Any) -> dt.date:
        if isinstance(value, str):
            # The date in the text, whatever its offset.
            return _parse_time(dt.datetime.fromisoformat, type_, value).date()  # type: ignore[no-any-return]
        if isinstance(value, dt.datetime):
            return _local(value, zone).date()
        if not isinstance(value, dt.date):
            raise number_coercion.mismatch(type_, value)
        return value

    return convert


def _round_time(value: dt.time, step: int) -> dt.time:
    if value.microsecond % step == 0:
        return value
    # A time that would round to midnight stays below it: 24:00 is not supported.
    whole = _since_midnight(value) // _MICROSECOND
    rounded = min((whole + step // 2) // step * step, _DAY_MICROSECONDS - step)
    return (dt.datetime.min + rounded * _MICROSECOND).time()


def _round_moment(value: dt.datetime, step: int) -> dt.datetime:
    rest = value.microsecond % step
    if rest == 0:
        return value
    return value + (step - rest if rest * 2 >= step else -rest) * _MICROSECOND


def _time(type_: SqlType, zone: dt.tzinfo) -> number_coercion.Coercer:
    step = 10**type_.scale

    def convert(value: Any) -> dt.time:
        if isinstance(value, str):
            value = _parse_time(dt.time.fromisoformat, type_, value)
        if isinstance(value, dt.datetime):
            value = _local(value, zone).time()
        if not isinstance(value, dt.time):
            raise number_coercion.mismatch(type_, value)
        return _round_time(value.replace(tzinfo=None), step)

    return convert


def _timestamp(type_: SqlType, zone: dt.tzinfo) -> number_coercion.Coercer:
    with_zone = type_.kind is Kind.TIMESTAMPTZ
    step = 10**type_.scale

    def convert(value: Any) -> dt.datetime:
        if isinstance(value, str):
            value = _parse_time(dt.datetime.fromisoformat, type_, value)
            if not with_zone:
                # A zone in the text of a timestamp without one is ignored, as in PostgreSQL.
                return _round_moment(value.replace(tzinfo=None), step)
        elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            value = dt.datetime(value.year, value.month, value.day)
        if not isinstance(value, dt.datetime):
            raise number_coercion.mismatch(type_, value)
        if not with_zone:
            return _round_moment(_local(value, zone), step)
        try:
            moment = (value.replace(tzinfo=zone) if value.tzinfo is None else value).astimezone(dt.UTC)
        except OverflowError:
            raise errors.DatetimeFieldOverflow(type=str(type_), value=str(value)) from None
        return _round_moment(moment, step)

    return convert


def _uuid(type_: SqlType) -> number_coercion.Coercer:
    def convert(value: Any) -> UUID:
        if isinstance(value, UUID):
            return value
        if not isinstance(value, str):
            raise number_coercion.mismatch(type_, value)
        try:
            return UUID(value.strip())
        except ValueError:
            raise number_coercion.invalid(type_, value) from None

    return convert


def _interval(type_: SqlType) -> number_coercion.Coercer:
    def convert(value: Any) -> str:
        if isinstance(value, str):
            return canonical_interval(parse_interval(value))
        if isinstance(value, Interval):
            return canonical_interval(parse_interval(str(value)))
        if isinstance(value, dt.timedelta):
            return canonical_interval(from_timedelta(value))
        if isinstance(value, dt.time):
            return canonical_interval(from_timedelta(_since_midnight(value)))
        raise number_coercion.mismatch(type_, value)

    return convert


def _since_midnight(value: dt.time) -> dt.timedelta:
    return dt.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)


def _json(type_: SqlType) -> number_coercion.Coercer:
    def convert(value: Any) -> str:
        if isinstance(value, str):
            check_characters(value)
            parse_json(value)
            return value
        if not isinstance(value, dict | list):
            raise number_coercion.mismatch(type_, value)
        return show_json(value)

    return convert


def _jsonb(type_: SqlType) -> number_coercion.Coercer:
    def convert(value: Any) -> str:
        if not isinstance(value, str | dict | list):
            raise number_coercion.mismatch(type_, value)
        text = normalize_json(value if isinstance(value, str) else show_json(value))
        check_characters(text)
        return text

    return convert


def _array(type_: SqlType, zone: dt.tzinfo) -> number_coercion.Coercer:
    assert type_.element is not None
    kind = type_.element.kind
    builder = _ZONED.get(kind)
    convert_element = builder(type_.element, zone) if builder is not None else _BUILDERS[kind](type_.element)

    def convert(value: Any) -> list[Any]:
        given = parse_array(value) if isinstance(value, str) else value
        if not isinstance(given, list | tuple):
            raise number_coercion.mismatch(type_, value)
        if any(isinstance(element, list) for element in given) and kind not in _DOCUMENTS:
            raise errors.FeatureNotSupported(feature="an array of several dimensions", instead="Use jsonb.")
        converted = [None if element is None else convert_element(element) for element in given]
        # As they are stored.
        return [None if v is None else str(v) for v in converted] if kind is Kind.UUID else converted

    return convert


def _network(type_: SqlType) -> number_coercion.Coercer:
    def convert(value: Any) -> bytes:
        if isinstance(value, bytes) and network.is_held(value):
            return network.network(value) if type_.kind is Kind.CIDR else value
        if not isinstance(value, (str, *network.ADDRESSES)):
            raise number_coercion.mismatch(type_, value)
        return network.read_address(str(value), type_)

    return convert


_DOCUMENTS = frozenset({Kind.JSON, Kind.JSONB})
_BUILDERS: dict[Kind, Callable[[SqlType], number_coercion.Coercer]] = {
    Kind.BOOLEAN: _boolean,
    Kind.SMALLINT: number_coercion.integer_coercer,
    Kind.INTEGER: number_coercion.integer_coercer,
    Kind.BIGINT: number_coercion.integer_coercer,
    Kind.REAL: number_coercion.floating_coercer,
    Kind.DOUBLE: number_coercion.floating_coercer,
    Kind.NUMERIC: number_coercion.numeric_coercer,
    Kind.BYTEA: _bytea,
    Kind.UUID: _uuid,
    Kind.OID: number_coercion.oid_coercer,
    Kind.INTERVAL: _interval,
    Kind.JSON: _json,
    Kind.JSONB: _jsonb,
    Kind.INET: _network,
    Kind.CIDR: _network,
}
# These depend on a time zone.
_ZONED: dict[Kind, Callable[[SqlType, dt.tzinfo], number_coercion.Coercer]] = {
    Kind.TEXT: _text,
    Kind.VARCHAR: _text,
    Kind.CHAR: _char,
    Kind.NAME: _name,
    Kind.ARRAY: _array,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _timestamp,
}
