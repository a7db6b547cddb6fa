"""Non-blocking mode, for threads that must not wait, such as the event loop.

**Invariant:** code that may wait for a file, another machine or a lock calls `may_wait` or uses `Holding` before it has
changed anything. In non-blocking mode that raises WouldWait; the whole work is rolled back and repeated by a thread
that may wait.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class WouldWait(Exception):
    """Not an error: another thread must do the work."""


class _Thread(threading.local):
    is_non_blocking = False


_THREAD = _Thread()


@contextmanager
def non_blocking() -> Iterator[None]:
    """Runs the block in non-blocking mode."""
    _THREAD.is_non_blocking = True
    try:
        yield
    finally:
        _THREAD.is_non_blocking = False


def is_non_blocking() -> bool:
    return _THREAD.is_non_blocking


def may_wait() -> None:
    """Called before an operation that may wait."""
    if _THREAD.is_non_blocking:
        raise WouldWait


class Lock(Protocol):
    def acquire(self, blocking: bool = True) -> bool: ...

    def release(self) -> None: ...


class Holding:
    """A lock that other threads hold while they read files: `with Holding(lock)`."""

    __slots__ = ("_lock",)

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=not _THREAD.is_non_blocking):
            raise WouldWait

    def __exit__(self, *_: object) -> None:
        self._lock.release()
