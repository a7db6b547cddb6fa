"""Values of the SQL types as Python values, and their canonical text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

from seachange.model.types import Kind, SqlType

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
}


def parse_canonical(type_: SqlType, text: str | None) -> Any:
    """The value whose canonical text this is; the inverse of `format_canonical`."""
    return None if text is None else _PARSERS[type_.kind](text)


def format_canonical(type_: SqlType, value: Any) -> str | None:
    return None if value is None else _FORMATTERS.get(type_.kind, str)(value)
