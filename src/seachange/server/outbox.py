"""What is to be sent to a client, from whoever works for it to the loop that writes.

**Invariant:** what a slow reader has not taken is bounded: whoever sends waits while the transport is full, or while
much is on its way to it. On the loop nobody waits: there, what is sent is one short result, and nothing while there is
no room.
**Invariant:** bytes arrive in the order in which they were sent. A thread writes to the socket itself only while
nothing is under way, and with the lock that whoever gives up the socket takes first: by then its number is not
another's.
"""

from __future__ import annotations

import asyncio
import os
import threading

from seachange import errors
from seachange.runtime.nonblocking import is_hasty

_GATHERED_BYTES_MAX = 64 << 10
_UNDERWAY_BYTES_MAX = 1 << 20
# Less is written by whoever has it, without waking the loop.
_SHORT_BYTES_MAX = 16 << 10


class Outbox:
    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.WriteTransport, socket: int = -1) -> None:
        """`socket` is the number of the transport's, where what is sent is what goes over it."""
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

    # For who works.

    def send(self, data: bytes) -> None:
        if not self._gathered and not self.has_room and not is_hasty():
            # What was sent before, in however short pieces, is to be taken first.
            self._await_room()
        self._gathered += data
        if len(self._gathered) >= _GATHERED_BYTES_MAX and not is_hasty():
            self.flush()
            if self._await_room():
                raise errors.QueryCanceled(reason="user request")
        if self.is_gone:
            raise errors.ProtocolViolation(detail="the client has gone")

    def flush(self) -> None:
        """One write for all that was gathered."""
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
        if is_hasty():
            self._write(data)
        else:
            self._loop.call_soon_threadsafe(self._write, data)

    def _write_now(self, data: bytes) -> int:
        """How many bytes of it the system takes. With the lock held."""
        if self._socket < 0 or self._underway_bytes or self.is_gone or self._transport.get_write_buffer_size():
            return 0
        try:
            return os.write(self._socket, data)
        except OSError:
            # Full, or broken, of which the loop hears.
            return 0

    def _await_room(self) -> bool:
        """Whether the wait was cut."""
        with self._lock:
            self._changed.wait_for(self._is_free)
            return self._is_cut and not self.is_gone

    def close(self, last: bytes = b"") -> None:
        """After what was sent, and a last word, which waits for nobody."""
        self._gathered += last
        self.flush()
        if not self.is_gone:
            self._loop.call_soon_threadsafe(self._transport.close)

    @property
    def has_room(self) -> bool:
        """Whether the client has taken enough of what was sent."""
        return self._is_writable and self._underway_bytes <= _UNDERWAY_BYTES_MAX

    def _is_free(self) -> bool:
        return self.is_gone or self._is_cut or self.has_room

    def mend(self) -> None:
        """Another statement begins: who interrupted the last one did not mean this."""
        with self._lock:
            self._is_cut = False

    # For other threads.

    def interrupt(self) -> None:
        """Ends the wait for a slow reader, as a request to cancel does."""
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
        """The connection is gone: nobody waits for it any more."""
        with self._lock:
            self.is_gone = True
            self._changed.notify_all()
