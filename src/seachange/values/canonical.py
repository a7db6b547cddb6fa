"""Values of the SQL types as Python values, and their canonical text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

from seachange.values.array_text import parse_array, show_array
from seachange.values.network import read_address, read_network, show_address, show_network
from seachange.values.types import TEXT, Kind, SqlType

_PARSERS: dict[Kind, Callable[[str], Any]] = {
    Kind.BOOLEAN: lambda text: text in ("true", "t", "1"),
    Kind.SMALLINT: int,
    Kind.INTEGER: int,
    Kind.BIGINT: int,
    Kind.REAL: float,
    Kind.DOUBLE: float,
    Kind.NUMERIC: Decimal,
    Kind.TEXT: str,
    Kind.VARCHAR: str,
    Kind.BYTEA: lambda text: bytes.fromhex(text.removeprefix("\\x")),
    Kind.DATE: dt.date.fromisoformat,
    Kind.TIME: dt.time.fromisoformat,
    Kind.TIMESTAMP: dt.datetime.fromisoformat,
    Kind.TIMESTAMPTZ: dt.datetime.fromisoformat,
    Kind.UUID: UUID,
    Kind.CHAR: str,
    Kind.NAME: str,
    Kind.INTERVAL: str,
    Kind.JSON: str,
    Kind.JSONB: str,
    Kind.OID: int,
    Kind.INET: read_address,
    Kind.CIDR: read_network,
}

_FORMATTERS: dict[Kind, Callable[[Any], str]] = {
    Kind.BOOLEAN: lambda value: "true" if value else "false",
    Kind.BYTEA: lambda value: "\\x" + value.hex(),
    Kind.DATE: lambda value: value.isoformat(),
    Kind.TIME: lambda value: value.isoformat(),
    Kind.TIMESTAMP: lambda value: value.isoformat(sep=" "),
    Kind.TIMESTAMPTZ: lambda value: value.isoformat(sep=" "),
    Kind.REAL: repr,
    Kind.DOUBLE: repr,
    Kind.INET: show_address,
    Kind.CIDR: show_network,
}


def parse_canonical(type_: SqlType, text: str | None) -> Any:
    """The value whose canonical text this is; the inverse of `format_canonical`."""
    if text is None:
        return None
    if type_.element is not None:
        element = _stored_element(type_.element)
        return [parse_canonical(element, part) for part in parse_array(text)]
    return _PARSERS[type_.kind](text)


def format_canonical(type_: SqlType, value: Any) -> str | None:
    if value is None:
        return None
    if type_.element is not None:
        element = _stored_element(type_.element)
        return show_array([format_canonical(element, part) for part in value])
    return _FORMATTERS.get(type_.kind, str)(value)


def _stored_element(element: SqlType) -> SqlType:
    """An array holds UUIDs as text."""
    return TEXT if element.kind is Kind.UUID else element
