"""The watchdog cancels statements that exceed their time limit or make the process grow too much; others continue.

A statement that has made the process grow may need much more memory before it finds the interrupt. Until it has ended,
the memory of the process is limited (`MemoryLimit`): its allocations then fail.

**Invariant:** only a statement that is still running is interrupted, never the one after it. An interrupt is repeated
until the statement ends, since one that arrives between two queries of a statement is lost. A statement that has
committed is never reported as cancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from seachange import errors
from seachange.engine.context.watching import WatchedSession
from seachange.runtime.clock import Clock

TICK_US = 25_000
# How long it waits without a statement, unless one begins.
IDLE_US = 3_600_000_000


class MemoryLimit(Protocol):
    """On the memory of the process: `runtime.memory_wall`."""

    def put_up(self) -> None: ...

    def take_down(self) -> None: ...


class Watched:
    """A statement, while it runs. Raises QueryCanceled or OutOfMemory instead of the error that the interrupted
    statement fails with."""

    __slots__ = ("_watchdog", "deadline_us", "growth_bytes_max", "is_limited", "problem", "resident_before", "runner")

    def __init__(self, watchdog: Watchdog, runner: WatchedSession, deadline_us: int, growth_bytes_max: int) -> None:
        """A limit of 0 means no limit."""
        self._watchdog = watchdog
        self.runner = runner
        self.deadline_us = deadline_us
        self.growth_bytes_max = growth_bytes_max
        self.resident_before: int | None = None
        self.problem: errors.Error | None = None
        # Whether the memory of the process is limited until it ends.
        self.is_limited = False

    def __enter__(self) -> None:
        self._watchdog.enter(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        ended = self.ended_with(error)
        if ended is not None and ended is not error:
            raise ended from error

    def ended_with(self, error: BaseException | None) -> BaseException | None:
        """Ends the watch; gives the error that the statement has ended with, if it has."""
        self._watchdog.leave(self)
        if self.problem is None:
            return error
        is_stopped = isinstance(error, (errors.Error, MemoryError)) or (error is None and not self.runner.is_settled)
        return self.problem if is_stopped else error

    def growth(self, resident: int) -> int:
        if self.resident_before is None:
            self.resident_before = resident
        return resident - self.resident_before


class Watchdog:
    def __init__(self, clock: Clock, resident_bytes: Callable[[], int], memory_limit: MemoryLimit) -> None:
        self._clock = clock
        self._resident_bytes = resident_bytes
        self._memory_limit = memory_limit
        self._lock = threading.Lock()
        self._running: set[Watched] = set()
        # How often memory was limited until now.
        self.shortages = 0
        # Whether the next step is due as soon as a statement has run for a while.
        self._is_idle = True
        self._entered = threading.Event()
        self._woken = threading.Event()

    def watch(self, runner: WatchedSession, timeout_ms: int, growth_bytes_max: int) -> Watched:
        """Around a statement; a limit of 0 means none."""
        deadline_us = self._clock.steady_us() + timeout_ms * 1_000 if timeout_ms else 0
        return Watched(self, runner, deadline_us, growth_bytes_max)

    def leave(self, watched: Watched) -> None:
        with self._lock:
            self._running.discard(watched)
            if watched.is_limited:
                self._memory_limit.take_down()

    @property
    def is_short(self) -> bool:
        """Whether memory is limited now."""
        with self._lock:
            return any(watched.is_limited for watched in self._running)

    def enter(self, watched: Watched) -> None:
        with self._lock:
            self._running.add(watched)
            was_idle, self._is_idle = self._is_idle, False
        if was_idle:
            self._entered.set()

    def wait(self, seconds: float) -> None:
        """A statement that begins is checked after a tick: most have ended by then, and wake no thread."""
        tick = TICK_US / 1_000_000
        if seconds > tick:
            self._entered.wait(seconds - tick)
        self._woken.wait(min(seconds, tick))

    def wake(self) -> None:
        """Only to stop."""
        self._woken.set()
        self._entered.set()

    def step(self, now_us: int) -> int:
        """Checks all running statements once."""
        with self._lock:
            if not self._running:
                self._is_idle = True
                self._entered.clear()
                return now_us + IDLE_US
            self._find_late(now_us)
            self._find_grown()
            for watched in self._running:
                if watched.problem is not None:
                    watched.runner.interrupt()
        return now_us + TICK_US

    def _find_late(self, now_us: int) -> None:
        for watched in self._running:
            if watched.problem is None and watched.deadline_us and now_us >= watched.deadline_us:
                watched.problem = errors.QueryCanceled(reason="statement timeout")

    def _find_grown(self) -> None:
        """Among the statements over their limit, cancels the one that has seen the process grow most, which is the
        oldest. One at a time: the others may be within their limits when its memory is released."""
        if any(watched.is_limited for watched in self._running):
            return
        resident = self._resident_bytes()
        growths = [(watched.growth(resident), watched) for watched in self._running]
        over = [(growth, watched) for growth, watched in growths if growth > watched.growth_bytes_max > 0]
        if not over:
            return
        growth, worst = max(over, key=lambda item: item[0])
        detail = f"the process grew by {growth >> 20} MB during the statement"
        worst.problem = worst.problem or errors.OutOfMemory(detail=detail)
        worst.is_limited = True
        self.shortages += 1
        self._memory_limit.put_up()
