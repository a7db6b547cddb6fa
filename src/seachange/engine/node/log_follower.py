"""Keeps an idle node up to date: it looks at once when the catalog says that others have published something, and in a
slow rhythm otherwise, in which it also tidies up.

**Invariant:** the watch only saves time. What it misses, because its connection was lost or because only descriptors
are told, is found in the next round.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from seachange import errors
from seachange.catalog.port import Catalog, ChangeWatch
from seachange.runtime.clock import Clock


class LogFollower:
    def __init__(
        self, catalog: Catalog, clock: Clock, look: Callable[[], None], tidy: Callable[[], None], round_seconds: float
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._look = look
        self._tidy = tidy
        self._round_seconds = round_seconds
        self._stopped = threading.Event()
        self._watch: ChangeWatch | None = None
        self._lock = threading.Lock()

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._run_until_lost()
            except errors.OperationalError:
                # The catalog is out of reach for now.
                self._stopped.wait(self._round_seconds)

    def _run_until_lost(self) -> None:
        watch = self._catalog.watch()
        with self._lock:
            self._watch = watch
        try:
            due_us = self._due_us()
            while not self._stopped.is_set():
                changed = watch.wait(max(0, due_us - self._clock.steady_us()) / 1_000_000)
                if self._stopped.is_set():
                    return
                # On a busy catalog the watch has something to tell all the time.
                if self._clock.steady_us() >= due_us:
                    self._tidy()
                    due_us = self._due_us()
                elif changed:
                    self._look()
        finally:
            with self._lock:
                self._watch = None
            watch.close()

    def _due_us(self) -> int:
        return self._clock.steady_us() + int(self._round_seconds * 1_000_000)

    def stop(self) -> None:
        self._stopped.set()
        with self._lock:
            if self._watch is not None:
                self._watch.wake()
