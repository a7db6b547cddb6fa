"""How a statement hears that it is to end while it is in Python: loops over rows ask now and then, waits are cut short.

**Invariant:** no check happens after a commit was sent to the catalog: what may have been committed is not reported as
canceled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from seachange import errors

T = TypeVar("T")

# Asking costs less than a row, but not nothing.
ROWS_PER_CHECK = 256


class Interruptible(Protocol):
    def interrupt(self) -> None: ...


class SessionInterrupts:
    """One per session. Set from any thread; cleared when a statement begins."""

    def __init__(self) -> None:
        self._set = threading.Event()
        # Why it is set: the statement is to end, or only to look up from its work.
        self._ends = False
        self._is_nudged = False
        # Held while queries are interrupted, so that none of them ends meanwhile.
        self._reaching = threading.Lock()
        self._reached: list[Interruptible] = []

    def clear(self) -> None:
        if not (self._ends or self._is_nudged or self._set.is_set()):
            return
        with self._reaching:
            self._ends = self._is_nudged = False
            self._set.clear()

    def set(self) -> None:
        self._ends = True
        self._cut()

    def nudge(self) -> None:
        """Cuts what runs now, which asks why by `was_nudged`, and may go on."""
        self._is_nudged = True
        self._cut()

    def _cut(self) -> None:
        self._set.set()
        with self._reaching:
            for running in self._reached:
                running.interrupt()

    def was_nudged(self) -> bool:
        """Whether there was a nudge since the last call. What is to end stays so."""
        with self._reaching:
            nudged, self._is_nudged = self._is_nudged, False
            if nudged and not self._ends:
                self._set.clear()
        # A concurrent nudge has set it before, or sets it now.
        if self._ends or self._is_nudged:
            self._set.set()
        return nudged

    @property
    def is_set(self) -> bool:
        return self._set.is_set()

    def check(self) -> None:
        if self._set.is_set():
            raise self.problem()

    def check_end(self) -> None:
        """Only whether the statement is to end, not whether it was nudged."""
        if self._ends:
            raise self.problem()

    def problem(self) -> errors.Error:
        return errors.QueryCanceled(reason="user request")

    def each(self, items: Iterable[T]) -> Iterator[T]:
        for number, item in enumerate(items):
            if not number % ROWS_PER_CHECK and self._set.is_set():
                raise self.problem()
            yield item

    def pause(self, seconds: float) -> None:
        if self._set.wait(seconds):
            raise self.problem()

    @contextmanager
    def reaching(self, running: Interruptible) -> Iterator[None]:
        """An interrupt ends this query too, which is not the session's own."""
        with self._reaching:
            self._reached.append(running)
        try:
            # An earlier interrupt did not reach it.
            self.check()
            yield
        finally:
            with self._reaching:
                self._reached.remove(running)

    @property
    def reaches(self) -> int:
        """How many queries beside the session's own an interrupt would end now."""
        return len(self._reached)
