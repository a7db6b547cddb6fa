"""Values in PostgreSQL's binary format, as clients send and receive them.

**Invariant:** decoding an encoded value returns the value; undecodable data is an error with PostgreSQL's code.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from seachange import errors
from seachange.values.interval import Interval
from seachange.values.network import CIDR, INET, decode_address, encode_address
from seachange.values.types import NAMES, Kind, SqlType

_EPOCH_DATE = dt.date(2000, 1, 1)
_EPOCH = dt.datetime(2000, 1, 1)
_EPOCH_UTC = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_JSONB_VERSION = b"\x01"
# A numeric is digits to base 10,000.
_BASE_DIGITS = 4
_NEGATIVE = 0x4000
_NUMERIC_HEAD = struct.Struct(">hhHh")
_ARRAY_HEAD = struct.Struct(">iii")
_DIMENSION = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
_INTERVAL = struct.Struct(">qii")
_NULL = -1


def encode_binary(type_: SqlType, value: Any) -> bytes:
    """Of a value that is not NULL."""
    if type_.element is not None:
        return _encode_array(type_.element, value)
    return _ENCODERS[type_.kind](value)


def decode_binary(type_: SqlType, data: bytes) -> Any:
    try:
        if type_.element is not None:
            return _decode_array(type_.element, data)
        return _DECODERS[type_.kind](data)
    except (struct.error, ValueError, OverflowError, IndexError):
        raise errors.InvalidBinaryRepresentation(type=type_) from None


def _packer(form: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    packed = struct.Struct(form)
    return packed.pack, lambda data: packed.unpack(data)[0]


_BOOLEAN, _SMALLINT, _INTEGER, _BIGINT = _packer(">?"), _packer(">h"), _packer(">i"), _packer(">q")
_REAL, _DOUBLE, _OID = _packer(">f"), _packer(">d"), _packer(">I")


def _encode_numeric(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text, scale = "".join(map(str, digits)) + "0" * max(exponent, 0), max(-exponent, 0)
    whole, fraction = (text[:-scale], text[-scale:].rjust(scale, "0")) if scale else (text, "")
    whole = whole.rjust(-(-len(whole) // _BASE_DIGITS) * _BASE_DIGITS, "0")
    fraction = fraction.ljust(-(-len(fraction) // _BASE_DIGITS) * _BASE_DIGITS, "0")
    joined = whole + fraction
    groups = [int(joined[i : i + _BASE_DIGITS]) for i in range(0, len(joined), _BASE_DIGITS)]
    weight = len(whole) // _BASE_DIGITS - 1
    while groups and not groups[0]:
        groups, weight = groups[1:], weight - 1
    while groups and not groups[-1]:
        groups = groups[:-1]
    if not groups:
        weight, sign = 0, 0
    head = _NUMERIC_HEAD.pack(len(groups), weight, _NEGATIVE if sign else 0, scale)
    return head + struct.pack(f">{len(groups)}h", *groups)


def _decode_numeric(data: bytes) -> Decimal:
    count, weight, sign, scale = _NUMERIC_HEAD.unpack_from(data)
    groups = struct.unpack(f">{count}h", data[_NUMERIC_HEAD.size :])
    if sign not in (0, _NEGATIVE):
        raise ValueError("no number")
    digits = "".join(f"{group:04d}" for group in groups) or "0"
    # The decimal point follows as many digits as the weight says, which may be fewer or more than there are.
    exponent = (weight + 1 - count) * _BASE_DIGITS if count else 0
    shift = exponent + scale
    number = int(digits + "0" * shift) if shift >= 0 else int(digits) // 10**-shift
    return Decimal((1 if sign else 0, tuple(map(int, str(number))), -scale))


def _encode_interval(value: Interval) -> bytes:
    return _INTERVAL.pack(value.microseconds, value.days, value.months)


def _decode_interval(data: bytes) -> Interval:
    microseconds, days, months = _INTERVAL.unpack(data)
    return Interval(months, days, microseconds)


def _encode_time(value: dt.time) -> bytes:
    since = dt.datetime.combine(_EPOCH_DATE, value) - _EPOCH
    return _BIGINT[0](since // _MICROSECOND)


def _decode_jsonb(data: bytes) -> str:
    if data[:1] != _JSONB_VERSION:
        raise ValueError("another version")
    return data[1:].decode()


def _encode_array(element: SqlType, value: list[Any]) -> bytes:
    head = _ARRAY_HEAD.pack(1 if value else 0, int(None in value), element.oid)
    if not value:
        return head
    parts = [head, _DIMENSION.pack(len(value), 1)]
    for item in value:
        if item is None:
            parts.append(_LENGTH.pack(_NULL))
        else:
            encoded = encode_binary(element, item)
            parts += (_LENGTH.pack(len(encoded)), encoded)
    return b"".join(parts)


def _decode_array(element: SqlType, data: bytes) -> list[Any]:
    dimensions, _, oid = _ARRAY_HEAD.unpack_from(data)
    if dimensions > 1:
        raise errors.FeatureNotSupported(feature="an array of several dimensions", instead="Use jsonb.")
    # Of an enum type, the labels may be texts.
    if oid not in (element.oid, NAMES[element.kind].oid):
        raise ValueError("another type")
    if not dimensions:
        return []
    count, _ = _DIMENSION.unpack_from(data, _ARRAY_HEAD.size)
    position = _ARRAY_HEAD.size + _DIMENSION.size
    found: list[Any] = []
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if length == _NULL:
            found.append(None)
            continue
        if length < 0 or position + length > len(data):
            raise ValueError("too short")
        found.append(decode_binary(element, data[position : position + length]))
        position += length
    if position != len(data):
        raise ValueError("too long")
    return found


_ENCODERS: dict[Kind, Callable[[Any], bytes]] = {
    Kind.BOOLEAN: _BOOLEAN[0],
    Kind.SMALLINT: _SMALLINT[0],
    Kind.INTEGER: _INTEGER[0],
    Kind.BIGINT: _BIGINT[0],
    Kind.REAL: _REAL[0],
    Kind.DOUBLE: _DOUBLE[0],
    Kind.NUMERIC: _encode_numeric,
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME, Kind.JSON), str.encode),
    Kind.JSONB: lambda value: _JSONB_VERSION + value.encode(),
    Kind.BYTEA: bytes,
    Kind.DATE: lambda value: _INTEGER[0]((value - _EPOCH_DATE).days),
    Kind.TIME: _encode_time,
    Kind.TIMESTAMP: lambda value: _BIGINT[0]((value - _EPOCH) // _MICROSECOND),
    Kind.TIMESTAMPTZ: lambda value: _BIGINT[0]((value - _EPOCH_UTC) // _MICROSECOND),
    Kind.INTERVAL: _encode_interval,
    Kind.UUID: lambda value: value.bytes,
    Kind.OID: _OID[0],
    Kind.INET: partial(encode_address, INET),
    Kind.CIDR: partial(encode_address, CIDR),
}

_DECODERS: dict[Kind, Callable[[bytes], Any]] = {
    Kind.BOOLEAN: _BOOLEAN[1],
    Kind.SMALLINT: _SMALLINT[1],
    Kind.INTEGER: _INTEGER[1],
    Kind.BIGINT: _BIGINT[1],
    Kind.REAL: _REAL[1],
    Kind.DOUBLE: _DOUBLE[1],
    Kind.NUMERIC: _decode_numeric,
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME, Kind.JSON), bytes.decode),
    Kind.JSONB: _decode_jsonb,
    Kind.BYTEA: bytes,
    Kind.DATE: lambda data: _EPOCH_DATE + dt.timedelta(days=_INTEGER[1](data)),
    Kind.TIME: lambda data: (_EPOCH + _BIGINT[1](data) * _MICROSECOND).time(),
    Kind.TIMESTAMP: lambda data: _EPOCH + _BIGINT[1](data) * _MICROSECOND,
    Kind.TIMESTAMPTZ: lambda data: _EPOCH_UTC + _BIGINT[1](data) * _MICROSECOND,
    Kind.INTERVAL: _decode_interval,
    Kind.UUID: lambda data: UUID(bytes=data),
    Kind.OID: _OID[1],
    Kind.INET: partial(decode_address, INET),
    Kind.CIDR: partial(decode_address, CIDR),
}
