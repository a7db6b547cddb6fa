"""The worker threads for clients; their number grows to the maximum that was ever busy at once.

**Invariant:** each piece of work gets a thread at once, an idle one or a new one: none waits for another to end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from seachange.runtime.clock import SYSTEM_CLOCK

_US = 1_000_000
_LOG = logging.getLogger(__name__)

Work = Callable[[], object]


class WorkerThreads:
    """Used instead of a ThreadPoolExecutor, whose futures cost as much as a short statement."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle = 0
        self._threads: list[threading.Thread] = []
        # None ends the thread that takes it.
        self._work: SimpleQueue[Work | None] = SimpleQueue()

    def run(self, work: Work) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                thread = threading.Thread(target=self._serve, name=f"{self._name}_{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._work.put(work)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except Exception:  # noqa: BLE001 - the thread has others to work for
                _LOG.exception("work for a client failed")
            with self._lock:
                self._idle += 1

    def stop(self, timeout_s: float) -> bool:
        """Stops after pending work. Returns False if some work did not end in time; its threads end with the
        process."""
        with self._lock:
            threads = list(self._threads)
        for _ in threads:
            self._work.put(None)
        end_us = SYSTEM_CLOCK.steady_us() + round(timeout_s * _US)
        for thread in threads:
            thread.join(max(end_us - SYSTEM_CLOCK.steady_us(), 0) / _US)
        return not any(thread.is_alive() for thread in threads)
