"""Background work of a node: objects that are stepped, and the threads that step them.

**Invariant:** a step does what is due at the time that it is given, and does not wait for time to pass. So a test can
drive a node without threads, by a clock of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from seachange.runtime.clock import Clock
from seachange.runtime.threads import start_thread

# Until a step that found no memory is tried again.
OUT_OF_MEMORY_US = 100_000


class BackgroundWork(Protocol):
    def step(self, now_us: int) -> int:
        """Does what is due at `now_us` of the steady clock; returns the time at which the next step is due."""

    def wait(self, seconds: float) -> None:
        """Returns after that time, or earlier if there may be something to do."""

    def wake(self) -> None:
        """Ends a wait; may be called from another thread."""


class Alarm:
    """A wait that ends with its time or with `wake`."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def wait(self, seconds: float) -> None:
        self._rung.wait(seconds)
        self._rung.clear()

    def wake(self) -> None:
        self._rung.set()


def drive(work: BackgroundWork, clock: Clock, is_done: Callable[[], bool]) -> None:
    """Steps the work when it is due."""
    while not is_done():
        try:
            due_us = work.step(clock.steady_us())
        except MemoryError:
            # Only as long as a statement that is too large takes to end.
            due_us = clock.steady_us() + OUT_OF_MEMORY_US
        if not is_done():
            work.wait(max(0, due_us - clock.steady_us()) / 1_000_000)


class BackgroundThread:
    """Steps one piece of work when it is due, until it is stopped: first after `delay_us`, or when it is woken."""

    def __init__(self, name: str, work: BackgroundWork, clock: Clock, delay_us: int = 0) -> None:
        self._work = work
        self._clock = clock
        self._delay_us = delay_us
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"seachange-{name}", daemon=True)

    def start(self) -> None:
        start_thread(self._thread)

    def stop(self) -> None:
        """Waits for a running step."""
        self._stopped.set()
        self._work.wake()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        if self._delay_us:
            self._work.wait(self._delay_us / 1_000_000)
        drive(self._work, self._clock, self._stopped.is_set)
