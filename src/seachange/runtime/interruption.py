"""Interruption of code that only computes, such as the passes over the tree of a statement: it checks regularly whether
its statement has been cancelled.

**Invariant:** code that checks has changed no shared state, or restores it when the check raises.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

# A check is cheaper than most items, but not free.
_ITEMS_PER_CHECK = 256


class _Thread(threading.local):
    check: Callable[[], None] | None = None


_THREAD = _Thread()


class InterruptedBy:
    """`check` raises when the computation of this thread should end: `with InterruptedBy(check)`."""

    __slots__ = ("_before", "_check")

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._before: Callable[[], None] | None = None

    def __enter__(self) -> None:
        self._before, _THREAD.check = _THREAD.check, self._check

    def __exit__(self, *_: object) -> None:
        _THREAD.check = self._before


def check_interrupt() -> None:
    if _THREAD.check is not None:
        _THREAD.check()


def each(items: Iterable[T]) -> Iterator[T]:
    for number, item in enumerate(items):
        if not number % _ITEMS_PER_CHECK:
            check_interrupt()
        yield item
