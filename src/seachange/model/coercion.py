"""Assignment of Python values to columns: each SQL type's own values, or an error with PostgreSQL's code.

**Invariant:** what `coercer(type)` returns is canonical: equal values of one type are equal Python values, of the one
Python type that the storage of that SQL type expects.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from seachange import errors
from seachange.model.array_text import parse_array
from seachange.model.interval import Interval, canonical_interval, from_timedelta, parse_interval
from seachange.model.json_text import normalize_json, parse_json, show_json
from seachange.model.timezone import UTC, find_zone, session_zone
from seachange.model.types import NAME_BYTES_MAX, NUMERIC_PRECISION_MAX, QUOTIENT_SCALES, Kind, SqlType

Coercer = Callable[[Any], Any]

INTEGER_BITS: dict[Kind, int] = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}

_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_LOOSE_DATE = re.compile(r"\s*([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(.*)", re.DOTALL)
_BYTEA_ESCAPE = re.compile(r"\\(\\|[0-3][0-7]{2})|[^\\]", re.DOTALL)
_OID_MASK = (1 << 32) - 1
_TRUE = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})
_SPECIAL_FLOATS = {sign + word: float(sign + word) for sign in ("", "+", "-") for word in ("inf", "infinity", "nan")}
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY_MICROSECONDS = 86_400_000_000
_float32 = struct.Struct("<f")
# The default context keeps 28 digits; a numeric may have 38.
_WIDE = Context(prec=100)


def coerce(type_: SqlType, value: Any) -> Any:
    return coercer(type_)(value)


def coercer(type_: SqlType) -> Coercer:
    """The assignment conversion to a type: NULL stays NULL. Moments are read in the zone of the session that asks."""
    return _coercer(type_, session_zone() if type_.kind in _ZONED else UTC)


@lru_cache(maxsize=1024)
def _coercer(type_: SqlType, zone: str) -> Coercer:
    builder = _ZONED.get(type_.kind)
    convert = builder(type_, find_zone(zone)) if builder is not None else _BUILDERS[type_.kind](type_)

    def coerce_value(value: Any) -> Any:
        return None if value is None else convert(value)

    return coerce_value


def _invalid(type_: SqlType, value: object) -> errors.Error:
    return errors.InvalidTextRepresentation(type=type_, value=value)


def _out_of_range(type_: SqlType, value: object) -> errors.Error:
    return errors.NumericValueOutOfRange(type=type_, value=value)


def _mismatch(type_: SqlType, value: object) -> errors.Error:
    name = type(value).__name__
    return errors.DatatypeMismatch(detail=f"a value of Python type {name} cannot be stored as {type_}")


def _boolean(type_: SqlType) -> Coercer:
    def convert(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if not isinstance(value, str):
            raise _mismatch(type_, value)
        word = value.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise _invalid(type_, value)

    return convert


def _integer(type_: SqlType) -> Coercer:
    limit = 1 << (INTEGER_BITS[type_.kind] - 1)

    def convert(value: Any) -> int:
        number = value if type(value) is int else _to_integer(type_, value)
        if not -limit <= number < limit:
            raise _out_of_range(type_, value)
        return number

    return convert


def _oid(type_: SqlType) -> Coercer:
    def convert(value: Any) -> int:
        number = value if type(value) is int else _to_integer(type_, value)
        # Numbers below zero are those of 32 bits without a sign.
        if not -(1 << 31) <= number < 1 << 32:
            raise _out_of_range(type_, value)
        return number & _OID_MASK

    return convert


def _to_integer(type_: SqlType, value: Any) -> int:
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            raise _invalid(type_, value)
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _mismatch(type_, value)
    if isinstance(value, int):
        return int(value)
    if not math.isfinite(value):
        raise _out_of_range(type_, value)
    # PostgreSQL rounds halves away from zero in numeric, to even in floating point.
    rounding = ROUND_HALF_UP if isinstance(value, Decimal) else ROUND_HALF_EVEN
    return int(Decimal(value).to_integral_value(rounding))


def _floating(type_: SqlType) -> Coercer:
    single = type_.kind is Kind.REAL

    def convert(value: Any) -> float:
        number = value if type(value) is float else _to_float(type_, value)
        if not single or not math.isfinite(number):
            return number
        try:
            return float(_float32.unpack(_float32.pack(number))[0])
        except OverflowError:
            raise _out_of_range(type_, value) from None

    return convert


def _to_float(type_: SqlType, value: Any) -> float:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _SPECIAL_FLOATS:
            return _SPECIAL_FLOATS[word]
        if not _NUMBER.fullmatch(value):
            raise _invalid(type_, value)
    elif isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _mismatch(type_, value)
    try:
        number = float(value)
    except OverflowError:
        raise _out_of_range(type_, value) from None
    if math.isinf(number) and not (isinstance(value, float | Decimal) and math.isinf(value)):
        raise _out_of_range(type_, value)
    return number


def _numeric(type_: SqlType) -> Coercer:
    precision, scale = type_.digits
    step = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)

    def convert(value: Any) -> Decimal:
        number = value if isinstance(value, Decimal) else _to_decimal(type_, value)
        # abs() would round to 28 digits.
        if not number.is_finite() or number.copy_abs() >= limit:
            raise _out_of_range(type_, value)
        rounded = _quantize(number, step)
        if not type_.precision and rounded != number:
            # Nobody asked for so many digits and no more.
            raise _out_of_range(type_, value)
        if rounded.copy_abs() >= limit:
            raise _out_of_range(type_, value)
        return rounded if rounded else step - step

    return convert


def exact_numeric(value: Any) -> Decimal:
    """A number with all the digits that it was given, if a numeric can have so many; who stores it rounds it.

    >>> exact_numeric("-1.0050"), exact_numeric("1e3")
    (Decimal('-1.0050'), Decimal('1000'))
    """
    type_ = SqlType(Kind.NUMERIC)
    number = value if isinstance(value, Decimal) else _to_decimal(type_, value)
    # Zeros at its end may be more than that; of a number too great or small, nothing is computed.
    for shown in (number, number.normalize(_WIDE) if _is_moderate(number) else number):
        if _digit_count(shown) <= NUMERIC_PRECISION_MAX:
            # Written out, and without the sign that a zero may have.
            return Decimal(f"{shown if shown else shown.copy_abs():f}")
    raise _out_of_range(type_, value)


def _is_moderate(number: Decimal) -> bool:
    return number.is_finite() and (not number or abs(number.adjusted()) <= NUMERIC_PRECISION_MAX)


def _digit_count(number: Decimal) -> float:
    """How many digits it has when it is written without an exponent."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return math.inf
    return max(len(digits) + exponent, 0) + max(-exponent, 0)


def computed_coercer(type_: SqlType) -> Coercer:
    """The same of what a statement computes: a quotient has more digits than a numeric without any declared holds, and
    was rounded in any case."""
    convert = coercer(type_)
    if type_.kind is not Kind.NUMERIC or type_.precision:
        return convert
    step = Decimal(1).scaleb(-type_.digits[1])

    def convert_rounded(value: Any) -> Any:
        is_quotient = isinstance(value, Decimal) and -int(value.as_tuple().exponent) in QUOTIENT_SCALES
        return convert(_quantize(value, step) if is_quotient else value)

    return convert_rounded


def _quantize(number: Decimal, step: Decimal) -> Decimal:
    if number.as_tuple().exponent == step.as_tuple().exponent:
        return number
    return number.quantize(step, ROUND_HALF_UP, _WIDE)


def _to_decimal(type_: SqlType, value: Any) -> Decimal:
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise _invalid(type_, value)
        return Decimal(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch(type_, value)
    # A float is the shortest decimal that reads back as it, as PostgreSQL's own cast.
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def check_characters(text: str) -> None:
    """Raises on what is no text: it can neither be stored nor handed to an engine."""
    if "\x00" in text:
        raise errors.CharacterNotInRepertoire()
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise errors.UnpairedSurrogate() from None


def _text(type_: SqlType, zone: dt.tzinfo) -> Coercer:
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


def _char(type_: SqlType, zone: dt.tzinfo) -> Coercer:
    """Without the spaces at its end, which do not count: it gets them back where it is shown."""
    convert = _text(type_, zone)
    return lambda value: convert(value).rstrip(" ")


def _name(type_: SqlType, zone: dt.tzinfo) -> Coercer:
    convert = _text(type_, zone)
    return lambda value: convert(value).encode()[:NAME_BYTES_MAX].decode(errors="ignore")


def _to_text(type_: SqlType, value: Any, zone: dt.tzinfo) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            return value.isoformat(sep=" ")
        # An offset of whole hours is written without minutes.
        return value.astimezone(zone).isoformat(sep=" ").removesuffix(":00")
    if isinstance(value, str | int | Decimal | UUID | Interval):
        return str(value)
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    raise _mismatch(type_, value)


def _bytea(type_: SqlType) -> Coercer:
    def convert(value: Any) -> bytes:
        if isinstance(value, str):
            return _parse_bytea(type_, value)
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _mismatch(type_, value)
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
        raise _invalid(type_, text)
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
    """What a clock in the zone shows."""
    return value if value.tzinfo is None else value.astimezone(zone).replace(tzinfo=None)


def _date(type_: SqlType, zone: dt.tzinfo) -> Coercer:
    def convert(value: Any) -> dt.date:
        if isinstance(value, str):
            # The date of the text itself, whatever its offset.
            return _parse_time(dt.datetime.fromisoformat, type_, value).date()  # type: ignore[no-any-return]
        if isinstance(value, dt.datetime):
            return _local(value, zone).date()
        if not isinstance(value, dt.date):
            raise _mismatch(type_, value)
        return value

    return convert


def _round_time(value: dt.time, step: int) -> dt.time:
    if value.microsecond % step == 0:
        return value
    # What would be midnight stays below it: our times end there.
    whole = _since_midnight(value) // _MICROSECOND
    rounded = min((whole + step // 2) // step * step, _DAY_MICROSECONDS - step)
    return (dt.datetime.min + rounded * _MICROSECOND).time()


def _round_moment(value: dt.datetime, step: int) -> dt.datetime:
    rest = value.microsecond % step
    if rest == 0:
        return value
    return value + (step - rest if rest * 2 >= step else -rest) * _MICROSECOND


def _time(type_: SqlType, zone: dt.tzinfo) -> Coercer:
    step = 10**type_.scale

    def convert(value: Any) -> dt.time:
        if isinstance(value, str):
            value = _parse_time(dt.time.fromisoformat, type_, value)
        if isinstance(value, dt.datetime):
            value = _local(value, zone).time()
        if not isinstance(value, dt.time):
            raise _mismatch(type_, value)
        return _round_time(value.replace(tzinfo=None), step)

    return convert


def _timestamp(type_: SqlType, zone: dt.tzinfo) -> Coercer:
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
            raise _mismatch(type_, value)
        if not with_zone:
            return _round_moment(_local(value, zone), step)
        moment = (value.replace(tzinfo=zone) if value.tzinfo is None else value).astimezone(dt.UTC)
        return _round_moment(moment, step)

    return convert


def _uuid(type_: SqlType) -> Coercer:
    def convert(value: Any) -> UUID:
        if isinstance(value, UUID):
            return value
        if not isinstance(value, str):
            raise _mismatch(type_, value)
        try:
            return UUID(value.strip())
        except ValueError:
            raise _invalid(type_, value) from None

    return convert


def _interval(type_: SqlType) -> Coercer:
    def convert(value: Any) -> str:
        if isinstance(value, str):
            return canonical_interval(parse_interval(value))
        if isinstance(value, Interval):
            return canonical_interval(parse_interval(str(value)))
        if isinstance(value, dt.timedelta):
            return canonical_interval(from_timedelta(value))
        if isinstance(value, dt.time):
            return canonical_interval(from_timedelta(_since_midnight(value)))
        raise _mismatch(type_, value)

    return convert


def _since_midnight(value: dt.time) -> dt.timedelta:
    return dt.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)


def _json(type_: SqlType) -> Coercer:
    def convert(value: Any) -> str:
        if isinstance(value, str):
            check_characters(value)
            parse_json(value)
            return value
        if not isinstance(value, dict | list):
            raise _mismatch(type_, value)
        return show_json(value)

    return convert


def _jsonb(type_: SqlType) -> Coercer:
    def convert(value: Any) -> str:
        if not isinstance(value, str | dict | list):
            raise _mismatch(type_, value)
        text = normalize_json(value if isinstance(value, str) else show_json(value))
        check_characters(text)
        return text

    return convert


def _array(type_: SqlType, zone: dt.tzinfo) -> Coercer:
    assert type_.element is not None
    kind = type_.element.kind
    builder = _ZONED.get(kind)
    convert_element = builder(type_.element, zone) if builder is not None else _BUILDERS[kind](type_.element)

    def convert(value: Any) -> list[Any]:
        given = parse_array(value) if isinstance(value, str) else value
        if not isinstance(given, list | tuple):
            raise _mismatch(type_, value)
        if any(isinstance(element, list) for element in given) and kind not in _DOCUMENTS:
            raise errors.FeatureNotSupported(feature="an array of several dimensions", instead="Use jsonb.")
        converted = [None if element is None else convert_element(element) for element in given]
        # As they are stored.
        return [None if v is None else str(v) for v in converted] if kind is Kind.UUID else converted

    return convert


_DOCUMENTS = frozenset({Kind.JSON, Kind.JSONB})
_BUILDERS: dict[Kind, Callable[[SqlType], Coercer]] = {
    Kind.BOOLEAN: _boolean,
    Kind.SMALLINT: _integer,
    Kind.INTEGER: _integer,
    Kind.BIGINT: _integer,
    Kind.REAL: _floating,
    Kind.DOUBLE: _floating,
    Kind.NUMERIC: _numeric,
    Kind.BYTEA: _bytea,
    Kind.UUID: _uuid,
    Kind.OID: _oid,
    Kind.INTERVAL: _interval,
    Kind.JSON: _json,
    Kind.JSONB: _jsonb,
}
# These depend on a time zone.
_ZONED: dict[Kind, Callable[[SqlType, dt.tzinfo], Coercer]] = {
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
