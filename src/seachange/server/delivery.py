"""Streaming of result rows to the client while the query is running.

**Invariant:** only one batch of rows, and what is buffered for the client, is in memory: a slow reader makes the query
wait. Anything that ends the statement ends that wait.

**Invariant:** a statement whose rows a client has begun to receive is not rerun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from seachange.engine.context.interrupts import Interruptible
from seachange.server import messages as m
from seachange.server.outbox import Outbox
from seachange.server.rows import describe_rows, encode_each, encode_rows
from seachange.server.values import BINARY_FORM
from seachange.sql.copy.copy_binary import HEADER, TRAILER
from seachange.sql.port.result import ResultColumn, Row

Columns = tuple[ResultColumn, ...]
Reaching = Callable[[Interruptible], AbstractContextManager[None]]


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
