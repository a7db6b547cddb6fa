"""The outbox of a connection: output from the thread that works for a client to the loop that writes.

**Invariant:** unread output is bounded: a sender waits while the transport is full, or while much is on its way to it.
The loop never waits: it sends only one short result, and nothing while there is no room.

**Invariant:** bytes arrive in the order in which they were sent. A thread writes to the socket directly only while
nothing is pending, and with the lock that is also taken before the socket is closed, so that its descriptor cannot have
been reused.
"""

from __future__ import annotations

import asyncio
import os
import threading

from seachange import errors
from seachange.runtime.nonblocking import is_non_blocking

_GATHERED_BYTES_MAX = 64 << 10
_UNDERWAY_BYTES_MAX = 1 << 20
# Shorter output is written by the sender itself, without waking the loop.
_SHORT_BYTES_MAX = 16 << 10


class Outbox:
    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.WriteTransport, socket: int = -1) -> None:
        """`socket` is the descriptor of the transport's socket, if output is not encrypted."""
        self._loop = loop
        self._transport = transport
        self._socket = socket
        self._gathered = bytearray()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._underway_bytes = 0
        self._is_writable = True
        self._is_cut = False
        self.is_gone = False

    # For the worker.

    def send(self, data: bytes) -> None:
        if not self._gathered and not self.has_room and not is_non_blocking():
            # Earlier output, in however short pieces, must be read by the client first.
            self._await_room()
        self._gathered += data
        if len(self._gathered) >= _GATHERED_BYTES_MAX and not is_non_blocking():
            self.flush()
            if self._await_room():
                raise errors.QueryCanceled(reason="user request")
        if self.is_gone:
            raise errors.ProtocolViolation(detail="the client has gone")

    def send_early(self, data: bytes) -> bool:
        """Writes output of a statement that still runs, and all before it. Returns False, instead of waiting, if the
        client does not read."""
        if self.is_gone or not self.has_room or is_non_blocking():
            return False
        self._gathered += data
        self.flush()
        return True

    def flush(self) -> None:
        """Writes all collected output at once."""
        data = bytes(self._gathered)
        self._gathered.clear()
        if not data or self.is_gone:
            return
        with self._lock:
            if len(data) <= _SHORT_BYTES_MAX:
                data = data[self._write_now(data) :]
            self._underway_bytes += len(data)
        if not data:
            return
        if is_non_blocking():
            self._write(data)
        else:
            self._loop.call_soon_threadsafe(self._write, data)

    def _write_now(self, data: bytes) -> int:
        """The number of bytes that the system accepted. Requires the lock."""
        if self._socket < 0 or self._underway_bytes or self.is_gone or self._transport.get_write_buffer_size():
            return 0
        try:
            return os.write(self._socket, data)
        except OSError:
            # Full, or broken, which the loop will notice.
            return 0

    def _await_room(self) -> bool:
        """Returns whether the wait was interrupted."""
        with self._lock:
            self._changed.wait_for(self._is_free)
            return self._is_cut and not self.is_gone

    def close(self, last: bytes = b"") -> None:
        """Closes after pending output and a last message, without waiting for the client."""
        self._gathered += last
        self.flush()
        if not self.is_gone:
            self._loop.call_soon_threadsafe(self._transport.close)

    @property
    def has_room(self) -> bool:
        """Whether the client has read enough of the output."""
        return self._is_writable and self._underway_bytes <= _UNDERWAY_BYTES_MAX

    def _is_free(self) -> bool:
        return self.is_gone or self._is_cut or self.has_room

    def mend(self) -> None:
        """A new statement begins: an interrupt was for the last one."""
        with self._lock:
            self._is_cut = False

    # For other threads.

    def interrupt(self) -> None:
        """Ends the wait for a slow reader, as a cancel request does."""
        with self._lock:
            self._is_cut = True
            self._changed.notify_all()

    # For the loop.

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)
        with self._lock:
            self._underway_bytes -= len(data)
            self._changed.notify_all()

    def set_writable(self, is_writable: bool) -> None:
        with self._lock:
            self._is_writable = is_writable
            self._changed.notify_all()

    def lose(self) -> None:
        """The connection is gone: wakes all waiters."""
        with self._lock:
            self.is_gone = True
            self._changed.notify_all()
