"""Streaming of result rows to the client while the query is running.

**Invariant:** only one batch of rows, and what is buffered for the client, is in memory: a slow reader makes the query
wait. Anything that ends the statement ends that wait.

**Invariant:** a statement whose rows a client has begun to receive is not rerun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from seachange.engine.context.interrupts import Interruptible
from seachange.server import messages as m
from seachange.server.framing import frame_rows
from seachange.server.messages import Field, data_rows, row_description, spread_formats
from seachange.server.outbox import Outbox
from seachange.server.values import BINARY_FORM, encoder, modifier, width
from seachange.sql.copy.copy_binary import HEADER, TRAILER
from seachange.sql.port.result import ResultColumn, Row

Columns = tuple[ResultColumn, ...]
Reaching = Callable[[Interruptible], AbstractContextManager[None]]
_ROWS_AT_ONCE = 4_096
# For fewer rows, encoding by columns is slower.
_ROWS_FRAMED_MIN = 32


class Delivery:
    def __init__(
        self,
        out: Outbox,
        reaching: Reaching,
        formats: Sequence[int],
        describes: bool,
        check: Callable[[Columns], None] | None,
    ) -> None:
        """`describes`: a RowDescription is sent first. `check` refuses unexpected columns."""
        self._out = out
        self._reaching = reaching
        self._formats = formats
        self._describes = describes
        self._check = check
        self._columns: Columns = ()
        self.is_begun = False

    def begin(self, columns: Columns) -> None:
        if self._check is not None:
            self._check(columns)
        self._columns, self.is_begun = columns, True
        if self._describes:
            self._out.send(describe_rows(columns, self._formats))

    def take(self, rows: Sequence[Row]) -> None:
        with self._reaching(self._out):
            for data in encode_rows(self._columns, self._formats, rows):
                self._out.send(data)


class BinaryCopy:
    """COPY TO in binary: each record is encoded like a row, in a CopyData message."""

    def __init__(self, out: Outbox, reaching: Reaching) -> None:
        self._out = out
        self._reaching = reaching
        self._columns: Columns = ()
        # As in PostgreSQL, the header comes with the first record: some clients rely on it.
        self._before = HEADER
        self.is_begun = False

    def begin(self, columns: Columns) -> None:
        self._columns, self.is_begun = columns, True
        self._out.send(m.copy_response(b"H", len(columns), BINARY_FORM))

    def take(self, rows: Sequence[Row]) -> None:
        with self._reaching(self._out):
            for row in encode_each(self._columns, (BINARY_FORM,), rows):
                self._out.send(m.copy_data(self._before + row[m.HEAD_BYTES :]))
                self._before = b""

    def end(self) -> None:
        self._out.send(m.copy_data(self._before + TRAILER))
        self._out.send(m.COPY_DONE)


class RowForm:
    """How few rows of these columns are described and encoded, for a statement that is run again and again."""

    __slots__ = ("columns", "description", "encoders", "formats")

    def __init__(self, columns: Columns, formats: tuple[int, ...]) -> None:
        self.columns, self.formats = columns, formats
        self.description = describe_rows(columns, formats)
        spread = spread_formats(formats, len(columns))
        self.encoders = [encoder(column, form) for column, form in zip(columns, spread, strict=True)]

    def encode(self, rows: Sequence[Row]) -> Iterator[bytes]:
        if len(rows) >= _ROWS_FRAMED_MIN:
            return encode_rows(self.columns, self.formats, rows)
        return iter((data_rows(rows, self.encoders),))


def describe_rows(columns: Sequence[ResultColumn], formats: Sequence[int]) -> bytes:
    return row_description(list(map(_field, columns, spread_formats(formats, len(columns)))))


def _field(column: ResultColumn, form: int) -> Field:
    table, attribute = (column.origin.table, column.origin.attribute) if column.origin is not None else (0, 0)
    return Field(column.name, column.oid, width(column), modifier(column.type), form, table, attribute)


def encode_rows(columns: Sequence[ResultColumn], formats: Sequence[int], rows: Sequence[Row]) -> Iterator[bytes]:
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
