"""Texts of json and jsonb: validation, and the canonical text of a jsonb, as PostgreSQL prints it.

Numbers keep their digits. Keys of an object are sorted by their length in bytes, then by their bytes; the last of
several equal keys counts.

>>> normalize_json('{"bb":1.50, "a": [true,null], "bb" : 1e2}')
'{"a": [true, null], "bb": 100}'
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from seachange import errors
from seachange.values.types import Kind, SqlType

JSON_TYPE = SqlType(Kind.JSON)
# The limits of PostgreSQL's numeric before and after the decimal point.
_EXPONENT_MAX = 131_072
_WHITE = " \t\n\r"
_ESCAPED_NUL = "\\u0000"


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


# Integers as decimals: Python reads none of more than 4,300 digits.
_DECODER = json.JSONDecoder(parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse_constant)


def parse_json(text: str, type_: SqlType = JSON_TYPE) -> Any:
    """Numbers as Decimal, objects as dict."""
    try:
        return _DECODER.decode(text.strip(_WHITE))
    except (ValueError, InvalidOperation):
        raise errors.InvalidTextRepresentation(type=type_, value=text) from None
    except RecursionError:
        raise errors.StatementTooComplex() from None


class _Repeated(Exception):
    pass


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Repeated
    return found


def has_repeated_key(text: str) -> bool:
    """For a valid JSON text."""
    try:
        json.loads(text, object_pairs_hook=_distinct, parse_int=Decimal, parse_float=Decimal)
    except _Repeated:
        return True
    return False


def normalize_json(text: str) -> str:
    value = parse_json(text, SqlType(Kind.JSONB))
    if _ESCAPED_NUL in text and _has_nul(value):
        raise errors.UntranslatableCharacter()
    return show_json(value)


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_nul, value))


def show_json(value: Any) -> str:
    """The text of a value from `parse_json`, or of any of Python's JSON values."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        items = sorted(((str(key), item) for key, item in value.items()), key=_key_order)
        return (
            "{" + ", ".join([f"{json.dumps(key, ensure_ascii=False)}: {show_json(item)}" for key, item in items]) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join([show_json(item) for item in value]) + "]"
    return _show_number(value)


def _key_order(item: tuple[str, Any]) -> tuple[int, bytes]:
    encoded = item[0].encode(errors="surrogatepass")
    return len(encoded), encoded


def _show_number(value: Any) -> str:
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, Decimal) or not value.is_finite():
        raise errors.InvalidTextRepresentation(type=SqlType(Kind.JSONB), value=value)
    if abs(value.adjusted()) > _EXPONENT_MAX:
        raise errors.NumericValueOutOfRange(type=SqlType(Kind.NUMERIC), value=value)
    text = f"{value:f}"
    return text.removeprefix("-") if not value else text
