"""The watchdog cancels statements that exceed their time limit or make the process grow too much; others continue.

**Invariant:** only a statement that is still running is interrupted, never the one after it. An interrupt is repeated
until the statement ends, since one that arrives between two queries of a statement is lost. A statement that has
committed is never reported as cancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from seachange import errors
from seachange.runtime.clock import Clock

TICK_MS = 25


class WatchedSession(Protocol):
    @property
    def is_settled(self) -> bool:
        """Whether the statement has committed, so that it can no longer be cancelled."""

    def interrupt(self) -> None: ...


class _Watched:
    __slots__ = ("deadline_us", "growth_bytes_max", "problem", "resident_before", "runner")

    def __init__(self, runner: WatchedSession, deadline_us: int, growth_bytes_max: int) -> None:
        """A limit of 0 means no limit."""
        self.runner = runner
        self.deadline_us = deadline_us
        self.growth_bytes_max = growth_bytes_max
        self.resident_before: int | None = None
        self.problem: errors.Error | None = None

    def growth(self, resident: int) -> int:
        if self.resident_before is None:
            self.resident_before = resident
        return resident - self.resident_before


class Watchdog:
    def __init__(self, clock: Clock, resident_bytes: Callable[[], int]) -> None:
        self._clock = clock
        self._resident_bytes = resident_bytes
        self._lock = threading.Lock()
        self._running: set[_Watched] = set()
        self._awake = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watch(self, runner: WatchedSession, timeout_ms: int, growth_bytes_max: int) -> Iterator[None]:
        """Raises QueryCanceled or OutOfMemory instead of the error that the interrupted statement fails with."""
        deadline_us = self._clock.steady_us() + timeout_ms * 1_000 if timeout_ms else 0
        watched = _Watched(runner, deadline_us, growth_bytes_max)
        self._enter(watched)
        try:
            yield
        except errors.Error as error:
            if watched.problem is None:
                raise
            raise watched.problem from error
        finally:
            with self._lock:
                self._running.discard(watched)
        if watched.problem is not None and not runner.is_settled:
            raise watched.problem

    def _enter(self, watched: _Watched) -> None:
        with self._lock:
            self._running.add(watched)
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="seachange-watchdog", daemon=True)
                self._thread.start()
        if not self._awake.is_set():
            self._awake.set()

    def stop(self) -> None:
        self._stopped.set()
        self._awake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(TICK_MS / 1_000):
            if self.step(self._clock.steady_us()):
                continue
            self._awake.clear()
            # A statement that entered, or a stop, before `clear` has set an event that is gone now.
            if not self._running and not self._stopped.is_set():
                self._awake.wait()

    def step(self, now_us: int) -> bool:
        """Checks all running statements once; returns False if there are none."""
        with self._lock:
            if not self._running:
                return False
            self._find_late(now_us)
            self._find_grown()
            for watched in self._running:
                if watched.problem is not None:
                    watched.runner.interrupt()
        return True

    def _find_late(self, now_us: int) -> None:
        for watched in self._running:
            if watched.problem is None and watched.deadline_us and now_us >= watched.deadline_us:
                watched.problem = errors.QueryCanceled(reason="statement timeout")

    def _find_grown(self) -> None:
        """Among the statements over their limit, cancels the one that has seen the process grow most, which is the
        oldest."""
        resident = self._resident_bytes()
        over = [
            (watched.growth(resident), watched)
            for watched in self._running
            if watched.growth(resident) > watched.growth_bytes_max > 0
        ]
        if not over or any(watched.problem is not None for watched in self._running):
            return
        growth, worst = max(over, key=lambda item: item[0])
        worst.problem = errors.OutOfMemory(detail=f"the process grew by {growth >> 20} MB during the statement")
