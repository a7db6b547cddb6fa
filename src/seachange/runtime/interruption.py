"""Interruption of code that only computes, such as the passes over the tree of a statement: it checks regularly whether
its statement has been cancelled.

**Invariant:** code that checks has changed no shared state, or restores it when the check raises.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

# A check is cheaper than most items, but not free.
_ITEMS_PER_CHECK = 256


class _Thread(threading.local):
    check: Callable[[], None] | None = None


_THREAD = _Thread()


@contextmanager
def interruptible(check: Callable[[], None]) -> Iterator[None]:
    """`check` raises when the computation of this thread should end."""
    before, _THREAD.check = _THREAD.check, check
    try:
        yield
    finally:
        _THREAD.check = before


def check_interrupt() -> None:
    if _THREAD.check is not None:
        _THREAD.check()


def each(items: Iterable[T]) -> Iterator[T]:
    for number, item in enumerate(items):
        if not number % _ITEMS_PER_CHECK:
            check_interrupt()
        yield item
