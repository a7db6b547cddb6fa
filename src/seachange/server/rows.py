"""Results as messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seachange.server.framing import frame_rows
from seachange.server.messages import Field, data_rows, row_description, spread_formats
from seachange.server.values import encoder, modifier, width
from seachange.sql.port.result import ResultColumn, Row

_ROWS_AT_ONCE = 4_096
# For fewer rows, encoding by columns is slower.
_ROWS_FRAMED_MIN = 32


def describe_rows(columns: Sequence[ResultColumn], formats: Sequence[int]) -> bytes:
    return row_description(list(map(_field, columns, spread_formats(formats, len(columns)))))


def _field(column: ResultColumn, form: int) -> Field:
    table, attribute = (column.origin.table, column.origin.attribute) if column.origin is not None else (0, 0)
    return Field(column.name, column.oid, width(column), modifier(column.type), form, table, attribute)


def encode_rows(columns: Sequence[ResultColumn], formats: Sequence[int], rows: Sequence[Row]) -> Iterator[bytes]:
    """Encodes the rows in batches."""
    forms = spread_formats(formats, len(columns))
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[first : first + _ROWS_AT_ONCE]
        yield (
            frame_rows(some, columns, forms)
            if columns and len(some) >= _ROWS_FRAMED_MIN
            else _one_by_one(some, columns, forms)
        )


def encode_each(columns: Sequence[ResultColumn], formats: Sequence[int], rows: Sequence[Row]) -> Iterator[bytes]:
    """One message per row."""
    forms = spread_formats(formats, len(columns))
    for row in rows:
        yield _one_by_one((row,), columns, forms)


def _one_by_one(rows: Sequence[Row], columns: Sequence[ResultColumn], forms: Sequence[int]) -> bytes:
    return data_rows(rows, [encoder(column, form) for column, form in zip(columns, forms, strict=True)])
