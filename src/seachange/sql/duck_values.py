"""Values of parameters, as DuckDB takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb

from seachange.model.interval import Interval, canonical_interval
from seachange.model.json_text import show_json


def _interval(value: Interval) -> duckdb.Value:
    return duckdb.Value(canonical_interval(value), duckdb.sqltypes.INTERVAL)


# By their Python types; all others DuckDB takes as they are.
_CONVERSIONS: dict[type, Callable[[Any], Any]] = {Interval: _interval, dict: show_json}


def to_duckdb(value: Any) -> Any:
    convert = _CONVERSIONS.get(type(value))
    return value if convert is None else convert(value)
