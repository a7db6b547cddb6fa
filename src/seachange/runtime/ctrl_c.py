"""Ctrl-C while the main thread works in the engine.

Python raises KeyboardInterrupt between any two steps of the main thread: also between taking the lock of the catalog
and the block that releases it, for which all writers of the machine would wait. And it raises nothing before a call,
such as a query of DuckDB, has returned.

**Invariant:** in the main thread, no KeyboardInterrupt is raised inside the engine. Ctrl-C interrupts the statement, as
a cancel of another session does, and is raised when it has ended.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the functions behind `signal`
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_MAIN = threading.main_thread().ident
# Without the conversion of numbers to names and back, which takes ten times as long.
_get_handler, _set_handler = _signal.getsignal, _signal.signal
# From this press on it is raised at once: the statement does not end.
_INSISTING = 3


class CtrlCHeld:
    """Around work in the engine: Ctrl-C calls `interrupt`, on another thread, and is raised afterwards. Does nothing in
    threads that get no signals, and in programs that handle Ctrl-C themselves."""

    __slots__ = ("_interrupt", "_interrupting", "_is_holding")

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        # One thread for each press.
        self._interrupting: list[threading.Thread] = []
        self._is_holding = False

    def __enter__(self) -> None:
        if threading.get_ident() == _MAIN and _get_handler(signal.SIGINT) is signal.default_int_handler:
            self._is_holding = True
            _set_handler(signal.SIGINT, self._note)

    def _note(self, number: int, frame: object) -> None:
        # On another thread: it may need locks that this one holds.
        thread = threading.Thread(target=self._interrupt, daemon=True)
        self._interrupting.append(thread)
        thread.start()
        if len(self._interrupting) >= _INSISTING:
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        if self._is_holding:
            _set_handler(signal.SIGINT, signal.default_int_handler)
        for thread in self._interrupting:
            # Or it would interrupt the next statement.
            thread.join()
        if self._interrupting:
            raise KeyboardInterrupt


@contextmanager
def calling_at_ctrl_c(act: Callable[[], None]) -> Iterator[None]:
    """Calls `act` on another thread as soon as Ctrl-C is pressed, also while Python's own handler has to wait for a
    call to return. For programs: it takes the place of other users of `signal.set_wakeup_fd`."""
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    thread = threading.Thread(target=_watch, args=(reading, act), name="seachange-ctrl-c", daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writing.close()
        thread.join()
        reading.close()


def _watch(reading: socket.socket, act: Callable[[], None]) -> None:
    while numbers := reading.recv(64):
        if signal.SIGINT in numbers:
            act()
