"""Filters of Spark as conditions on the rows that are read.

A filter without a condition is evaluated by Spark alone, and so is one whose value is not of the column's type.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from seachange.model.condition import Above, Among, Below, StartsWith
from seachange.model.condition import IsNull as NoValue
from seachange.model.schema.descriptor import Column
from seachange.storage.frame_rows import FrameCondition
from seachange.values.types import Kind

_WHOLE = (int,)
_NUMBERS = (int, Decimal)
# Values that compare in DuckDB as they do in Spark, by the kind of the column.
_COMPARABLE: dict[Kind, tuple[type, ...]] = {
    Kind.SMALLINT: _WHOLE,
    Kind.INTEGER: _WHOLE,
    Kind.BIGINT: _WHOLE,
    Kind.OID: _WHOLE,
    Kind.NUMERIC: _NUMBERS,
    Kind.DOUBLE: (float, int),
    Kind.TEXT: (str,),
    Kind.VARCHAR: (str,),
    Kind.NAME: (str,),
    Kind.UUID: (str,),
    Kind.DATE: (dt.date,),
    Kind.TIMESTAMP: (dt.datetime,),
    Kind.TIMESTAMPTZ: (dt.datetime,),
}


def condition_of(given: Filter, columns: Mapping[str, Column]) -> FrameCondition | None:
    path: tuple[str, ...] = getattr(given, "attribute", ())
    column = columns.get(path[0]) if len(path) == 1 else None
    if column is None or column.type.element is not None:
        return None
    match given:
        case IsNull():
            return NoValue(column.id)
        case In(_, values) if all(_is_comparable(column, value) for value in values):
            return Among(column.id, tuple(values))
        case EqualTo(_, value) if _is_comparable(column, value):
            return Among(column.id, (value,))
        case GreaterThan(_, value) if _is_comparable(column, value):
            return Above(column.id, value, inclusive=False)
        case GreaterThanOrEqual(_, value) if _is_comparable(column, value):
            return Above(column.id, value, inclusive=True)
        case LessThan(_, value) if _is_comparable(column, value):
            return Below(column.id, value, inclusive=False)
        case LessThanOrEqual(_, value) if _is_comparable(column, value):
            return Below(column.id, value, inclusive=True)
        case StringStartsWith(_, value) if _is_comparable(column, value):
            return StartsWith(column.id, value)
        case _:
            return None


def _is_comparable(column: Column, value: Any) -> bool:
    """A boolean is an int, and a datetime a date, for Python alone. The order of enum labels is not that of text."""
    if isinstance(value, bool) or column.type.enum:
        return False
    if isinstance(value, dt.datetime) != (column.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)):
        return False
    return isinstance(value, _COMPARABLE.get(column.type.kind, ()))
