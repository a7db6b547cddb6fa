"""The inbox of a connection: received messages, between the event loop that reads and the thread that works.

**Invariant:** at most one thread works on a connection: a thread is started only if none is working, and a thread that
finds nothing to do stops under the same lock.

**Invariant:** the inbox is bounded: above `BYTES_MAX` no more is read from the client.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from seachange import errors
from seachange.server.messages import MessageFrame

BYTES_MAX = 1 << 20
TERMINATE = MessageFrame(b"X", b"")
_EXECUTE = b"E"


class Inbox:
    def __init__(self, resume: Callable[[], None]) -> None:
        """`resume` is called, by any thread, when reading can continue."""
        self._resume = resume
        self._frames: deque[MessageFrame] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        # For a thread that waits within a COPY.
        self._changed = threading.Condition(self._lock)
        self._is_awaited = False
        self._is_busy = False
        self._is_ended = False
        self._is_cut = False
        # How often the inbox was emptied.
        self.rounds = 0

    def put(self, frames: Iterable[MessageFrame]) -> bool:
        """Returns whether a worker must be started."""
        with self._lock:
            for frame in frames:
                self._frames.append(frame)
                self._bytes += len(frame.body)
            return self._begin()

    def occupy(self, rounds: int | None = None) -> bool:
        """Becomes the worker, if there is none and there was none since `rounds`."""
        with self._lock:
            if self._is_busy or rounds not in (None, self.rounds):
                return False
            self._is_busy = True
            return True

    def end(self) -> bool:
        """The client is gone: pending messages are dropped."""
        with self._lock:
            self._frames.clear()
            self._frames.append(TERMINATE)
            self._bytes = 0
            self._is_ended = True
            return self._begin()

    def _begin(self) -> bool:
        if self._is_awaited:
            self._changed.notify_all()
        if self._is_busy or not self._is_ready():
            return False
        self._is_busy = True
        return True

    def _is_ready(self) -> bool:
        """An Execute is begun when the next message is known: alone before a Sync it is an autocommit statement, and no
        client waits for its response before it has sent a Sync or a Flush."""
        return bool(self._frames) and (len(self._frames) > 1 or self._frames[0].kind != _EXECUTE)

    @property
    def count(self) -> int:
        return len(self._frames)

    @property
    def is_full(self) -> bool:
        return self._bytes > BYTES_MAX

    def take(self) -> MessageFrame | None:
        """None: there is nothing to do, and the caller is no longer the worker."""
        with self._lock:
            if not self._is_ready():
                self._is_busy = False
                self.rounds += 1
                return None
            return self._pop()

    def wait(self) -> MessageFrame:
        with self._lock:
            self._is_awaited = True
            self._changed.wait_for(lambda: self._frames or self._is_cut)
            self._is_awaited = False
            if self._is_cut:
                raise errors.QueryCanceled(reason="user request")
            if self._is_ended:
                # The Terminate message stays in the inbox for the message loop.
                raise errors.CopyFailed(detail="the client has gone")
            return self._pop()

    def _pop(self) -> MessageFrame:
        was_full = self.is_full
        frame = self._frames.popleft()
        self._bytes -= len(frame.body)
        if was_full and not self.is_full:
            self._resume()
        return frame

    def give_back(self, frame: MessageFrame) -> None:
        """Puts the last message back; called by the worker, which stays the worker."""
        with self._lock:
            self._frames.appendleft(frame)
            self._bytes += len(frame.body)

    def ahead(self, count: int) -> tuple[MessageFrame, ...]:
        """The next messages, as far as they have arrived."""
        with self._lock:
            return tuple(self._frames[i] for i in range(min(count, len(self._frames))))

    def interrupt(self) -> None:
        """Ends a wait for messages, as a cancel request does."""
        with self._lock:
            self._is_cut = True
            self._changed.notify_all()

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False
