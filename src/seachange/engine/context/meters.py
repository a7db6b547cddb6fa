"""What a node counts of its work: how much, how long it took, why it failed.

**Invariant:** counting never waits for anything but another count, and takes no more than about a microsecond.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from types import TracebackType

from seachange import errors
from seachange.runtime.clock import Clock
from seachange.runtime.nonblocking import WouldWait

# Upper bounds of what is counted together; one more holds the rest.
BOUNDS_US = (
    *(100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000),
    *(1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """Of a histogram: how many fell below each bound and above the one before, and their sum."""

    counts: tuple[int, ...]
    sum_us: int

    @property
    def count(self) -> int:
        return sum(self.counts)


class Histogram:
    __slots__ = ("_counts", "_lock", "_sum_us")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BOUNDS_US) + 1)
        self._sum_us = 0

    def observe(self, took_us: int) -> None:
        place = bisect_left(BOUNDS_US, took_us)
        with self._lock:
            self._counts[place] += 1
            self._sum_us += took_us

    def read(self) -> Reading:
        with self._lock:
            return Reading(tuple(self._counts), self._sum_us)


class CounterByName:
    __slots__ = ("_counts", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: defaultdict[str, int] = defaultdict(int)

    def add(self, name: str = "", count: int = 1) -> None:
        with self._lock:
            self._counts[name] += count

    def read(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)

    @property
    def total(self) -> int:
        return sum(self.read().values())


class Meters:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        # By their commands, which are words of the grammar: there are not many.
        self.statements: dict[str, Histogram] = {}
        # Statements that failed, by SQLSTATE.
        self.failures = CounterByName()
        self.commits = Histogram()
        # Commits that were refused, by SQLSTATE, whether they were tried again or not.
        self.refusals = CounterByName()
        # Waits for transactions that may still write by older versions.
        self.drains = Histogram()
        self.pipeline_rows = CounterByName()

    def statement(self, command: str) -> Timing:
        histogram = self.statements.get(command)
        if histogram is None:
            histogram = self.statements.setdefault(command, Histogram())
        return Timing(self.clock, histogram, self.failures)

    def note(self, command: str, took_us: int) -> None:
        """A statement has succeeded."""
        histogram = self.statements.get(command) or self.statements.setdefault(command, Histogram())
        histogram.observe(took_us)

    def commit(self) -> Timing:
        return Timing(self.clock, self.commits, self.refusals)


class Timing:
    """Of one thing: how long it took, and what it failed with."""

    __slots__ = ("_begun_us", "_clock", "_failures", "_histogram")

    def __init__(self, clock: Clock, histogram: Histogram, failures: CounterByName) -> None:
        self._clock = clock
        self._histogram = histogram
        self._failures = failures
        self._begun_us = 0

    def __enter__(self) -> None:
        self._begun_us = self._clock.steady_us()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end(error)

    def end(self, error: BaseException | None) -> None:
        if isinstance(error, WouldWait):
            # Not begun: it is done again.
            return
        self._histogram.observe(self._clock.steady_us() - self._begun_us)
        if error is not None:
            self._failures.add(error.sqlstate if isinstance(error, errors.Error) else errors.Bug.sqlstate)
