"""How fast the statements of this node's clients are, from what it counts of them anyway.

A window ends when it has seen some statements, or has lasted a while; one with too few says nothing. What is usual
moves slowly, so that work that begins finds the earlier pace there.
"""

from __future__ import annotations

from collections.abc import Sequence

from seachange.engine.context.meters import BOUNDS_US, Meters
from seachange.model.pace import Pace

# Statements that many clients wait for. Others take as long as they take.
FOREGROUND = ("SELECT", "INSERT", "UPDATE", "DELETE", "COMMIT")
WINDOW_STATEMENTS = 50
WINDOW_US_MAX = 4_000_000
STATEMENTS_MIN = 5
# What a window counts for in what is usual: less the more there were, but never less than this.
_SHARE_MIN = 0.02
_HALF = 0.5


def median_us(counts: Sequence[int]) -> int:
    """Of a histogram by `BOUNDS_US`, as if those of one bucket were spread evenly over it.

    >>> median_us([0, 0, 0, 10] + [0] * (len(BOUNDS_US) - 3))
    750
    """
    half = sum(counts) * _HALF
    below = 0
    for place, count in enumerate(counts):
        if count and below + count >= half:
            low = BOUNDS_US[place - 1] if place else 0
            high = BOUNDS_US[place] if place < len(BOUNDS_US) else low
            return int(low + (high - low) * (half - below) / count)
        below += count
    return 0


class PaceMeter:
    """Asked with every heartbeat, by the thread of that."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self._since_us = meters.clock.steady_us()
        self._counted = self._count()
        self._windows = 0
        self._pace = Pace()

    def read(self) -> Pace:
        counted = self._count()
        window = [now - before for now, before in zip(counted, self._counted, strict=True)]
        now_us = self._meters.clock.steady_us()
        seen = sum(window)
        if seen >= WINDOW_STATEMENTS or now_us - self._since_us >= WINDOW_US_MAX:
            self._since_us, self._counted = now_us, counted
            self._pace = self._next(median_us(window) if seen >= STATEMENTS_MIN else 0)
        return self._pace

    def _next(self, latency_us: int) -> Pace:
        usual = self._pace.usual_us
        if latency_us:
            self._windows += 1
            share = max(1 / self._windows, _SHARE_MIN)
            usual = round(usual + (latency_us - usual) * share)
        return Pace(latency_us, usual)

    def _count(self) -> list[int]:
        """Of all statements that count, by bucket."""
        found = [self._meters.statements.get(command) for command in FOREGROUND]
        readings = [histogram.read().counts for histogram in found if histogram is not None]
        return [sum(counts) for counts in zip(*readings, strict=True)] if readings else [0] * (len(BOUNDS_US) + 1)
