"""Results as messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seachange.server.messages import Field, data_rows, row_description, spread_formats
from seachange.server.values import encoder, modifier, width
from seachange.sql.result import ResultColumn, Row

_ROWS_AT_ONCE = 256


def describe_rows(columns: Sequence[ResultColumn], formats: Sequence[int]) -> bytes:
    fields = [
        Field(column.name, column.oid, width(column), modifier(column.type), form)
        for column, form in zip(columns, spread_formats(formats, len(columns)), strict=True)
    ]
    return row_description(fields)


def encode_rows(
    columns: Sequence[ResultColumn], formats: Sequence[int], rows: Sequence[Row], at_once: int = _ROWS_AT_ONCE
) -> Iterator[bytes]:
    """In pieces of many rows each: a call for every one of them would cost as much as what it does."""
    encoders = [
        encoder(column, form) for column, form in zip(columns, spread_formats(formats, len(columns)), strict=True)
    ]
    for first in range(0, len(rows), at_once):
        yield data_rows(rows[first : first + at_once], encoders)
