"""Results for a browser: numbers as numbers, moments in ISO 8601, everything else as PostgreSQL's text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from seachange.sql.port.result import Result
from seachange.values.output_format import show_text
from seachange.values.types import SqlType

# Beyond this a browser's numbers are not exact.
_EXACT_MAX = 2**53


def result_json(result: Result) -> Mapping[str, Any]:
    """
    >>> result_json(Result("SELECT 1", (), [], 1))
    {'columns': [], 'rows': []}
    """
    columns = result.columns or ()
    rows = [[_cell(value, column.type) for value, column in zip(row, columns, strict=True)] for row in result.rows]
    return {"columns": [column.name for column in columns], "rows": rows}


def _cell(value: Any, type_: SqlType | None) -> Any:
    match value:
        case None | bool() | float():
            return value
        case int() if abs(value) <= _EXACT_MAX:
            return value
        case dt.datetime():
            return value.isoformat()
        case _:
            return str(value) if type_ is None else show_text(type_, value)
