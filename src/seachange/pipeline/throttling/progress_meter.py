"""The progress of a running task.

**Invariant:** reported progress never decreases, and stays below 1 until the task has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

# The maximum before the task has ended.
_ALMOST = 0.99


class Measured(Protocol):
    def steps_done(self) -> float:
        """The number of finished queries, plus the fraction of the running one."""

    def interrupt(self) -> None: ...


class ProgressMeter:
    """The progress of a task of about `steps` queries. Read by other threads than that of the task."""

    def __init__(self, steps: int = 1) -> None:
        self._steps = max(steps, 1)
        # Held while the running query is used, so that it does not end meanwhile.
        self._lock = threading.Lock()
        self._running: Measured | None = None
        self._before = 0.0
        self._reported = 0.0

    @contextmanager
    def watching(self, running: Measured) -> Iterator[None]:
        with self._lock:
            self._running = running
        try:
            yield
        finally:
            with self._lock:
                self._before += running.steps_done()
                self._running = None

    def read(self) -> float:
        with self._lock:
            done = self._before + (self._running.steps_done() if self._running is not None else 0.0)
            self._reported = max(self._reported, min(done / self._steps, _ALMOST))
            return self._reported

    def interrupt(self) -> None:
        with self._lock:
            if self._running is not None:
                self._running.interrupt()
