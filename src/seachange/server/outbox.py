"""What is to be sent to a client, from the thread that works for it to the loop that writes.

**Invariant:** what a slow reader has not taken is bounded: whoever sends waits while the transport is full, or while
much is on its way to it.
"""

from __future__ import annotations

import asyncio
import threading

from seachange import errors

_GATHERED_BYTES_MAX = 64 << 10
_UNDERWAY_BYTES_MAX = 1 << 20


class Outbox:
    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.WriteTransport) -> None:
        self._loop = loop
        self._transport = transport
        self._gathered = bytearray()
        self._changed = threading.Condition()
        self._underway_bytes = 0
        self._is_writable = True
        self.is_gone = False

    # For the thread that works.

    def send(self, data: bytes) -> None:
        self._gathered += data
        if len(self._gathered) >= _GATHERED_BYTES_MAX:
            self.flush()
            with self._changed:
                self._changed.wait_for(self._has_room)
        if self.is_gone:
            raise errors.ProtocolViolation(detail="the client has gone")

    def flush(self) -> None:
        """One write for all that was gathered."""
        data = bytes(self._gathered)
        self._gathered.clear()
        if data and not self.is_gone:
            with self._changed:
                self._underway_bytes += len(data)
            self._loop.call_soon_threadsafe(self._write, data)

    def close(self) -> None:
        """After what was sent."""
        self.flush()
        if not self.is_gone:
            self._loop.call_soon_threadsafe(self._transport.close)

    def _has_room(self) -> bool:
        return self.is_gone or (self._is_writable and self._underway_bytes <= _UNDERWAY_BYTES_MAX)

    # For the loop.

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)
        with self._changed:
            self._underway_bytes -= len(data)
            self._changed.notify_all()

    def set_writable(self, is_writable: bool) -> None:
        with self._changed:
            self._is_writable = is_writable
            self._changed.notify_all()

    def lose(self) -> None:
        """The connection is gone: nobody waits for it any more."""
        with self._changed:
            self.is_gone = True
            self._changed.notify_all()
