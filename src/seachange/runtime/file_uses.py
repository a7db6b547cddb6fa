"""Which readers may still open the files whose paths they were given.

A reader, such as a transaction or a task, begins a use before it asks for a path and ends it after it has opened the
file for the last time. Both are numbers of one counter, and so is the stamp that a path gets whenever it is given out.

**Invariant:** a path whose last stamp is below `oldest()` is not used: every reader that was given it has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

_ATTEMPTS = 100


class FileUses:
    """Thread-safe: each method changes one thing, and a use is entered before its reader is given a path."""

    def __init__(self) -> None:
        self._numbers = count(1)
        # In ascending order.
        self._open: dict[int, None] = {}

    def begin(self) -> int:
        """The number of a new use."""
        number = next(self._numbers)
        self._open[number] = None
        return number

    def end(self, number: int) -> None:
        self._open.pop(number, None)

    def stamp(self) -> int:
        """A number above those of all uses that have begun."""
        return next(self._numbers)

    def oldest(self) -> int:
        # Before the uses are read: one that begins meanwhile has a higher number.
        now = next(self._numbers)
        for _ in range(_ATTEMPTS):
            try:
                return min(next(iter(self._open), now), now)
            except RuntimeError:
                # A use began or ended during the iteration.
                continue
        return 0

    @contextmanager
    def using(self) -> Iterator[None]:
        number = self.begin()
        try:
            yield
        finally:
            self.end(number)
