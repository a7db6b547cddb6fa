"""Results as messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seachange.server.messages import Field, data_row, row_description, spread_formats
from seachange.server.values import encoder, modifier, width
from seachange.sql.result import ResultColumn, Row


def describe_rows(columns: Sequence[ResultColumn], formats: Sequence[int]) -> bytes:
    fields = [
        Field(column.name, column.oid, width(column), modifier(column.type), form)
        for column, form in zip(columns, spread_formats(formats, len(columns)), strict=True)
    ]
    return row_description(fields)


def encode_rows(columns: Sequence[ResultColumn], formats: Sequence[int], rows: Sequence[Row]) -> Iterator[bytes]:
    encoders = [
        encoder(column, form) for column, form in zip(columns, spread_formats(formats, len(columns)), strict=True)
    ]
    for row in rows:
        yield data_row([None if value is None else encode(value) for value, encode in zip(row, encoders, strict=True)])
