"""Interruption of code that only computes, such as the passes over the tree of a statement: it asks now and then
whether the statement that it works for is to end.

**Invariant:** code that asks has changed nothing that others see, or leaves it as it was when the answer is an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

# To ask takes less than most items, but not nothing.
_ITEMS_PER_CHECK = 256


class _Thread(threading.local):
    check: Callable[[], None] | None = None


_THREAD = _Thread()


@contextmanager
def interruptible(check: Callable[[], None]) -> Iterator[None]:
    """`check` raises when what this thread computes meanwhile is to end."""
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
