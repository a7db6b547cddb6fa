"""The heartbeat: renews the epoch of a node and publishes its marks.

**Invariant:** it waits for nothing that a statement may hold, neither a lock nor a connection: otherwise a long
statement would end the epoch.
"""

from __future__ import annotations

from contextlib import suppress

from seachange import errors
from seachange.engine.replica.node_epoch import NodeEpoch

_BEATS_PER_EXPIRY = 5


def beat_us(expiry_ms: int) -> int:
    """The time between two heartbeats of a node."""
    return expiry_ms * 1_000 // _BEATS_PER_EXPIRY


class Heartbeat:
    def __init__(self, epoch: NodeEpoch) -> None:
        self._epoch = epoch
        self._due_us = epoch.parts.clock.steady_us() + beat_us(epoch.expiry_ms)

    def step(self, now_us: int) -> int:
        if self._epoch.beat_soon.is_set() or now_us >= self._due_us:
            self._epoch.beat_soon.clear()
            # The catalog may be unavailable; the epoch outlives short interruptions.
            with suppress(errors.OperationalError):
                self._epoch.beat()
            self._due_us = now_us + beat_us(self._epoch.expiry_ms)
        return self._due_us

    def wait(self, seconds: float) -> None:
        self._epoch.beat_soon.wait(seconds)

    def wake(self) -> None:
        self._epoch.beat_soon.set()
