"""COPY over a connection: its messages as files.

**Invariant:** whoever is done with a COPY from the client, well or not, has read no message behind its end.
"""

from __future__ import annotations

import io
from typing import BinaryIO, TextIO

from seachange import errors
from seachange.model.relation import RelationName
from seachange.model.session_statements import CopyStream
from seachange.server import messages as m
from seachange.server.inbox import Inbox
from seachange.server.outbox import Outbox
from seachange.storage.plan import quote

_BUFFER_BYTES = 1 << 16


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
        """What comes behind the end of the data is read, too."""
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
                # The client takes leave in the middle: whoever comes next hears of it.
                self._inbox.end()
                raise errors.CopyFailed(detail="the client has gone")
            case b"H" | b"S":
                # Sent before the client knew that it is to send data.
                pass
            case _:
                raise errors.ProtocolViolation(detail=f"a message of kind {frame.kind!r} within COPY")


class CopySink(io.TextIOBase):
    """Sends each record that is written to it as one message, as clients expect it."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def write(self, text: str) -> int:
        self._outbox.send(m.copy_data(text.encode()))
        return len(text)


def copied_query(copy: CopyStream) -> str:
    """The rows that COPY TO writes."""
    if copy.relation is None:
        return copy.query
    columns = ", ".join(map(quote, copy.columns)) if copy.columns is not None else "*"
    return f"SELECT {columns} FROM {_quoted(copy.relation)}"  # noqa: S608 - quoted names


def _quoted(relation: RelationName) -> str:
    name = quote(relation.name)
    return name if relation.schema is None else f"{quote(relation.schema)}.{name}"
