"""Parameter values in the form that DuckDB accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb

from seachange.values.interval import Interval, canonical_interval
from seachange.values.json_text import show_json


def _interval(value: Interval) -> duckdb.Value:
    return duckdb.Value(canonical_interval(value), duckdb.sqltypes.INTERVAL)


def _list(value: list[Any]) -> Any:
    """All elements have one type, except NULLs."""
    kind = next((type(element) for element in value if element is not None), None)
    if kind is Interval:
        texts = [None if element is None else canonical_interval(element) for element in value]
        return duckdb.Value(texts, duckdb.list_type(duckdb.sqltypes.INTERVAL))
    if kind is dict:
        return [None if element is None else show_json(element) for element in value]
    return value


# By Python type; DuckDB accepts all others as they are.
_CONVERSIONS: dict[type, Callable[[Any], Any]] = {Interval: _interval, dict: show_json, list: _list}


def to_duckdb(value: Any) -> Any:
    convert = _CONVERSIONS.get(type(value))
    return value if convert is None else convert(value)
