"""Threads that must not wait, such as the one that serves all sockets: in haste, what would wait is not begun.

**Invariant:** whatever may wait for a file, for another machine or for somebody's lock, longer than a moment, says so
first (`may_wait`, `Holding`), before it has changed anything. In haste that raises WouldWait; the work as a whole is
taken back and done again by a thread that has time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class WouldWait(Exception):
    """No error: somebody else is to do it."""


class _Thread(threading.local):
    is_hasty = False


_THREAD = _Thread()


@contextmanager
def in_haste() -> Iterator[None]:
    """What this thread does meanwhile waits for nothing."""
    _THREAD.is_hasty = True
    try:
        yield
    finally:
        _THREAD.is_hasty = False


def is_hasty() -> bool:
    return _THREAD.is_hasty


def may_wait() -> None:
    """Called by whoever is about to."""
    if _THREAD.is_hasty:
        raise WouldWait


class Lock(Protocol):
    def acquire(self, blocking: bool = True) -> bool: ...

    def release(self) -> None: ...


class Holding:
    """A lock that others hold while they read files: `with Holding(lock)`."""

    __slots__ = ("_lock",)

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=not _THREAD.is_hasty):
            raise WouldWait

    def __exit__(self, *_: object) -> None:
        self._lock.release()
