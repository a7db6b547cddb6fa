"""SQL types and constants as Iceberg types and JSON values."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any, Final

from seachange.model.ids import ColumnId
from seachange.storage.arrow import element_id
from seachange.values.canonical import parse_canonical
from seachange.values.types import Kind, SqlType

_STRING: Final = "string"
# As stored: an interval is its canonical text, json the text as it was given, jsonb the text that SQL shows.
_NAMES: Final[dict[Kind, str]] = {
    Kind.BOOLEAN: "boolean",
    Kind.SMALLINT: "int",
    Kind.INTEGER: "int",
    Kind.BIGINT: "long",
    Kind.OID: "long",
    Kind.REAL: "float",
    Kind.DOUBLE: "double",
    Kind.TEXT: _STRING,
    Kind.VARCHAR: _STRING,
    Kind.CHAR: _STRING,
    Kind.NAME: _STRING,
    Kind.BYTEA: "binary",
    Kind.DATE: "date",
    Kind.TIME: "time",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
    Kind.INTERVAL: _STRING,
    Kind.UUID: "uuid",
    Kind.JSON: _STRING,
    Kind.JSONB: _STRING,
}


def iceberg_type(column_id: ColumnId, type_: SqlType) -> str | dict[str, Any]:
    """The type of a column's values, as they are in its files.

    >>> iceberg_type(ColumnId(1), SqlType(Kind.NUMERIC, 9, 2))
    'decimal(9, 2)'
    """
    if type_.element is not None:
        # An array holds UUIDs as text.
        is_text = type_.element.kind is Kind.UUID
        element = _STRING if is_text else iceberg_type(column_id, type_.element)
        ids = {"element-id": element_id(column_id), "element-required": False}
        return {"type": "list", **ids, "element": element}
    if type_.kind is Kind.NUMERIC:
        precision, scale = type_.digits
        return f"decimal({precision}, {scale})"
    return _NAMES[type_.kind]


def default_value(type_: SqlType, frozen: str | None) -> Any:
    """The value that rows have which were written before their column existed, in Iceberg's JSON form; None if there is
    none. Raises ValueError if JSON cannot hold it."""
    value = parse_canonical(type_, frozen)
    if type_.element is not None and value is not None:
        raise ValueError("readers do not accept an array as a default")
    match value:
        case float() if not math.isfinite(value):
            raise ValueError("JSON has neither NaN nor infinity")
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.hex()
        case dt.datetime():
            moment = value.isoformat(timespec="microseconds")
            return f"{moment}+00:00" if type_.kind is Kind.TIMESTAMPTZ and value.tzinfo is None else moment
        case dt.time():
            return value.isoformat(timespec="microseconds")
        case dt.date():
            return value.isoformat()
        case _ if type_.kind is Kind.NUMERIC:
            return f"{value:.{type_.digits[1]}f}"
        case _:
            return str(value)
