"""COPY over a connection: the statement, and its messages as files.

**Invariant:** COPY FROM the client, successful or not, reads no message after the end of its data.
"""

from __future__ import annotations

import io
from contextlib import ExitStack
from typing import BinaryIO, TextIO

from seachange import errors
from seachange.engine.context.statement_calls import prepare_one
from seachange.engine.session.session import Session
from seachange.model.relation import RelationName
from seachange.model.statements import CopyStream
from seachange.server import messages as m
from seachange.server.delivery import BinaryCopy
from seachange.server.inbox import Inbox
from seachange.server.outbox import Outbox
from seachange.server.values import TEXT_FORM
from seachange.sql.copy.copy_text import stream_format
from seachange.sql.port.result import Result
from seachange.storage.plan import quote

_BUFFER_BYTES = 1 << 16


class Copying:
    def __init__(self, session: Session, inbox: Inbox, outbox: Outbox) -> None:
        self._session = session
        self._inbox = inbox
        self._out = outbox

    def run(self, copy: CopyStream) -> Result:
        count = self._take(copy) if copy.inward else self._give(copy)
        return Result(f"COPY {count}", count=count)

    def _take(self, copy: CopyStream) -> int:
        source = CopySource(self._inbox)
        with ExitStack() as waiting:

            def begin(width: int) -> TextIO | BinaryIO:
                # Anything that ends the statement, including its timeout, also ends the wait for the client.
                waiting.enter_context(self._session.client.interrupts.reaching(self._inbox))
                self._out.send(m.copy_response(b"G", width, int(copy.binary)))
                self._out.flush()
                return source.open(copy.binary)

            count = self._session.copy_in(copy, begin)
            source.finish()
        return count

    def _give(self, copy: CopyStream) -> int:
        query = copied_query(copy)
        if copy.binary:
            return self._give_binary(query)
        format_ = stream_format(copy)
        columns = self._session.describe(prepare_one(query, ("SELECT",)), ()).columns or ()
        self._out.send(m.copy_response(b"H", len(columns), TEXT_FORM))
        count = self._session.copy_out(query, CopySink(self._out), format_)  # type: ignore[arg-type]
        self._out.send(m.COPY_DONE)
        return count

    def _give_binary(self, query: str) -> int:
        copy = BinaryCopy(self._out, self._session.client.interrupts.reaching)
        result = self._session.execute_prepared(prepare_one(query, ("SELECT",)), (), copy)
        if not copy.is_begun:
            copy.begin(result.columns or ())
            copy.take(result.rows)
        copy.end()
        return result.count


class CopySource(io.RawIOBase):
    """The bytes that the client sends, up to its CopyDone."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._chunk = memoryview(b"")
        self._is_done = False

    def open(self, binary: bool) -> TextIO | BinaryIO:
        buffered = io.BufferedReader(self, _BUFFER_BYTES)
        return buffered if binary else io.TextIOWrapper(buffered, encoding="utf-8", newline="")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._chunk and not self._is_done:
            self._receive()
        size = min(len(buffer), len(self._chunk))
        buffer[:size] = self._chunk[:size]
        self._chunk = self._chunk[size:]
        return size

    def finish(self) -> None:
        """Reads the messages up to the end of the data."""
        while not self._is_done:
            self._receive()

    def _receive(self) -> None:
        frame = self._inbox.wait()
        match frame.kind:
            case b"d":
                self._chunk = memoryview(frame.body)
            case b"c":
                self._is_done = True
            case b"f":
                self._is_done = True
                raise errors.CopyFailed(detail=m.read_text(frame.body))
            case b"X":
                # Terminate during COPY; leave it for the message loop.
                self._inbox.end()
                raise errors.CopyFailed(detail="the client has gone")
            case b"H" | b"S":
                # Sent before the client knew that it should send data.
                pass
            case _:
                raise errors.ProtocolViolation(detail=f"a message of kind {frame.kind!r} within COPY")


class CopySink(io.TextIOBase):
    """Sends each record that is written to it as one message, as clients expect."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def write(self, text: str) -> int:
        self._outbox.send(m.copy_data(text.encode()))
        return len(text)


def copied_query(copy: CopyStream) -> str:
    """The query for the rows that COPY TO writes."""
    if copy.relation is None:
        return copy.query
    columns = ", ".join(map(quote, copy.columns)) if copy.columns is not None else "*"
    return f"SELECT {columns} FROM {_quoted(copy.relation)}"  # noqa: S608 - quoted names


def _quoted(relation: RelationName) -> str:
    name = quote(relation.name)
    return name if relation.schema is None else f"{quote(relation.schema)}.{name}"
