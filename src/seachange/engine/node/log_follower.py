"""The log follower: keeps an idle node up to date.

It catches up at once when the catalog reports that another node has published something. At a slow interval it does so
in any case, and drops what no snapshot needs, so that the node's mark does not hold up others.

**Invariant:** the watch is an optimisation. What it misses, because its connection was lost or because it reports
descriptors only, is found in the next round.
"""

from __future__ import annotations

import threading

from seachange import errors
from seachange.catalog.port import ChangeWatch
from seachange.engine.replica.node_epoch import NodeEpoch


class LogFollower:
    def __init__(self, epoch: NodeEpoch, round_us: int) -> None:
        self._epoch = epoch
        self._round_us = round_us
        self._due_us = epoch.parts.clock.steady_us() + round_us
        self._has_changed = False
        # The wait while the catalog is not available.
        self._woken = threading.Event()
        self._watch: ChangeWatch | None = None
        self._lock = threading.Lock()

    def step(self, now_us: int) -> int:
        # On a busy catalog the watch reports changes all the time: the round comes first.
        is_due = now_us >= self._due_us
        try:
            if is_due or self._has_changed:
                self._has_changed = False
                self._epoch.catch_up()
            if is_due:
                self._epoch.tidy()
        except errors.OperationalError:
            # The catalog is not available, and the watch may have missed something.
            self.close()
            is_due = True
        if is_due:
            self._due_us = now_us + self._round_us
        return self._due_us

    def wait(self, seconds: float) -> None:
        try:
            self._has_changed = self._open_watch().wait(seconds)
        except errors.OperationalError:
            self.close()
            self._woken.wait(seconds)

    def _open_watch(self) -> ChangeWatch:
        if self._watch is None:
            watch = self._epoch.parts.catalog.watch()
            with self._lock:
                self._watch = watch
            if self._woken.is_set():
                watch.wake()
        return self._watch

    def wake(self) -> None:
        """Only to stop: a catalog that publishes wakes the watch itself."""
        self._woken.set()
        with self._lock:
            if self._watch is not None:
                self._watch.wake()

    def close(self) -> None:
        with self._lock:
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()
