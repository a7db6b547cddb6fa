"""Values on the wire, by PostgreSQL's type OIDs: encoding of results, decoding of parameters."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from seachange.server.messages import decode_text
from seachange.sql.port.result import ResultColumn
from seachange.values.binary_form import decode_binary, encode_binary
from seachange.values.coercion import check_characters, coercer
from seachange.values.number_coercion import exact_numeric
from seachange.values.output_format import show_text, shower
from seachange.values.timezone import UTC
from seachange.values.types import ENUM_WIDTH, NAMES, TEXT, Kind, SqlType, array_of

TEXT_FORM, BINARY_FORM = 0, 1

Encoder = Callable[[Any], bytes]

# PostgreSQL's offset of type modifiers.
_MODIFIED = 4
_DOUBLE = SqlType(Kind.DOUBLE)
_TEXTS = array_of(TEXT)
_PLAIN_CHARS_MAX = 16
_INTEGERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.OID})
_HELD_AS_TEXT = frozenset({Kind.UUID, Kind.INTERVAL})
_STRINGS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME, Kind.JSON, Kind.JSONB})

TYPE_BY_OID: dict[int, SqlType] = {
    **{names.oid: SqlType(kind) for kind, names in NAMES.items() if kind is not Kind.ARRAY},
    **{names.array_oid: array_of(SqlType(kind)) for kind, names in NAMES.items() if names.array_oid},
}


def modifier(type_: SqlType | None) -> int:
    """PostgreSQL's atttypmod."""
    if type_ is None:
        return -1
    if type_.kind is Kind.NUMERIC and type_.precision:
        return (type_.precision << 16 | type_.scale) + _MODIFIED
    if type_.moment_digits is not None:
        return type_.moment_digits
    return type_.length + _MODIFIED if type_.length else -1


def width(column: ResultColumn) -> int:
    if column.type is None:
        return -1
    return ENUM_WIDTH if column.type.enum and column.type.element is None else NAMES[column.type.kind].width


def encoder(column: ResultColumn, form: int) -> Encoder:
    """The function that encodes a value that is not NULL."""
    if column.type is None:
        return _encode_untyped
    return _text_encoder(column.type) if form == TEXT_FORM else _binary_encoder(column.type)


def _encode_untyped(value: Any) -> bytes:
    """For a type that clients see as text."""
    if isinstance(value, bool):
        return b"t" if value else b"f"
    return b"\\x" + value.hex().encode() if isinstance(value, bytes) else str(value).encode()


def _encode_double(value: float) -> bytes:
    text = repr(value)
    if len(text) <= _PLAIN_CHARS_MAX and "e" not in text and "n" not in text:
        # With so few digits, no other text is as short, and PostgreSQL uses no exponent.
        return text.removesuffix(".0").encode()
    return str(show_text(_DOUBLE, value)).encode()


@lru_cache(maxsize=256)
def _text_encoder(type_: SqlType) -> Encoder:
    if type_.kind in _INTEGERS:
        return lambda value: b"%d" % value
    if type_.kind in _STRINGS:
        return lambda value: str(value).encode()
    if type_.kind is Kind.DOUBLE:
        return _encode_double
    if type_.kind is Kind.NUMERIC:
        # A sum of integers is an integer with more digits than others.
        return lambda value: (str(value) if isinstance(value, int) else f"{value:f}").encode()
    return lambda value: str(show_text(type_, value)).encode()


@lru_cache(maxsize=256)
def _binary_encoder(type_: SqlType) -> Encoder:
    if type_.kind is Kind.NUMERIC:
        return lambda value: encode_binary(type_, Decimal(value))
    return partial(encode_binary, type_)


def decode(type_: SqlType | None, form: int, data: bytes | None) -> Any:
    """The value of a parameter; for an unknown type, its text."""
    if data is None:
        return None
    if form == BINARY_FORM:
        known = type_ or TEXT
        return _given(known, decode_binary(known, data))
    text = decode_text(data)
    check_characters(text)
    return text if type_ is None else _given(type_, text)


def _given(type_: SqlType, value: Any) -> Any:
    """The value as a program would pass it: elements that are stored as text would lose their type in a query. Numbers
    keep their digits: the target column limits them."""
    if type_.kind is Kind.NUMERIC:
        return exact_numeric(value)
    if type_.element is not None and type_.element.kind is Kind.NUMERIC:
        numbers = coercer(_TEXTS)(value) if isinstance(value, str) else value
        return [None if number is None else exact_numeric(number) for number in numbers]
    held = coercer(type_)(value)
    if type_.element is None or type_.element.kind not in _HELD_AS_TEXT:
        return held
    show = shower(type_, UTC)
    return held if show is None else show(held)
