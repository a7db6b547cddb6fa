"""The rows of a result as an Arrow table, with the types that the statement declares.

**Invariant:** the schema depends on the types of the columns alone, so that a query has the same schema whatever rows
it finds. The exception is a numeric without a declared precision, or with more digits than that, as a sum may have: its
scale is that of the value with most digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from seachange import errors
from seachange.sql.port.result import Result, ResultColumn
from seachange.storage.arrow import arrow_type
from seachange.values.output_format import show_text
from seachange.values.types import Kind, SqlType

# Kinds whose Python values Arrow, pandas or polars does not have: they become PostgreSQL's text.
_AS_TEXT = frozenset({Kind.INTERVAL, Kind.UUID, Kind.INET, Kind.CIDR, Kind.JSON, Kind.JSONB})
_DIGITS_128 = 38
_DIGITS_256 = 76


def arrow_table(result: Result, zone: str) -> pa.Table:
    """`zone` is the time zone in which moments are shown."""
    columns = result.columns or ()
    values = list(zip(*result.rows, strict=True)) if result.rows else [()] * len(columns)
    arrays = [_array(column, list(cells), zone) for column, cells in zip(columns, values, strict=True)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


def to_pandas(table: pa.Table) -> Any:
    _require("pandas")
    return table.to_pandas()


def to_polars(table: pa.Table) -> Any:
    _require("polars")
    return import_module("polars").from_arrow(table)


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise errors.FeatureNotSupported(
            feature=f"a DataFrame without the package {package}", instead=f"pip install {package}."
        )


def _array(column: ResultColumn, cells: list[Any], zone: str) -> pa.Array:
    type_ = column.type
    if type_ is None:
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    write = _writer(type_)
    return pa.array([write(cell) for cell in cells] if write is not None else cells, _shown_type(type_, cells, zone))


def _shown_type(type_: SqlType, cells: Sequence[Any], zone: str) -> pa.DataType:
    if type_.element is not None:
        items = [item for cell in cells if cell is not None for item in cell]
        return pa.list_(_shown_type(type_.element, items, zone))
    if type_.kind in _AS_TEXT or type_.enum:
        return pa.string()
    if type_.kind is Kind.TIMESTAMPTZ:
        return pa.timestamp("us", tz=zone)
    if type_.kind is Kind.NUMERIC and (not type_.precision or _exceeds(type_, cells)):
        return _decimal_type(cells)
    return arrow_type(type_)


def _writer(type_: SqlType) -> Callable[[Any], Any] | None:
    """None where Arrow takes the values as they are."""
    if type_.element is not None:
        one = _writer(type_.element)
        return None if one is None else lambda cell: None if cell is None else [one(item) for item in cell]
    if type_.kind in _AS_TEXT:
        return lambda cell: show_text(type_, cell)
    if type_.kind is Kind.NUMERIC:
        # A sum of integers is an integer.
        return lambda cell: Decimal(cell) if isinstance(cell, int) else cell
    return None


def _exceeds(type_: SqlType, cells: Sequence[Any]) -> bool:
    """Whether a value has more digits than the type: a sum has more than what was summed."""
    whole, scale = _digits(cells)
    return scale > type_.scale or whole > type_.precision - type_.scale


def _decimal_type(cells: Sequence[Any]) -> pa.DataType:
    whole, scale = _digits(cells)
    if whole + scale <= _DIGITS_128:
        return pa.decimal128(_DIGITS_128, scale)
    return pa.decimal256(_DIGITS_256, scale)


def _digits(cells: Sequence[Any]) -> tuple[int, int]:
    """The most digits before and after the decimal point."""
    parts = [Decimal(cell).as_tuple() for cell in cells if cell is not None]
    exponents = [part.exponent for part in parts if isinstance(part.exponent, int)]
    whole = max((len(part.digits) + e for part, e in zip(parts, exponents, strict=True)), default=0)
    return max(whole, 0), max((-e for e in exponents), default=0) if min(exponents, default=0) < 0 else 0
