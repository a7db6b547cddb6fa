"""Back-off: background work waits while the statements of clients have become slow.

**Invariant:** a task waits only while some node's statements take longer than a given multiple of what they took when
the work began, and never longer than `PATIENCE_US`: another cause of slowness does not stop the work for good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from seachange.model.pace import Pace
from seachange.runtime.clock import SYSTEM_CLOCK, Clock

# Shorter latencies never count as slow.
FLOOR_US = 1_000
PATIENCE_US = 30_000_000


@dataclass(frozen=True, slots=True)
class Slowed:
    node: str
    latency_us: int
    before_us: int

    @property
    def times(self) -> float:
        return self.latency_us / max(self.before_us, FLOOR_US)

    def __str__(self) -> str:
        return (
            f"foreground: statements of node {self.node} take {self.latency_us / 1_000:.1f} ms, "
            f"{self.times:.1f} times as long as before the work"
        )


def most_slowed(paces: Mapping[str, Pace], before_us: Mapping[str, int]) -> Slowed | None:
    """The node whose statements have slowed down most; nodes without statements are ignored.

    >>> paces = {"a": Pace(6_000, 2_000), "b": Pace(9_000, 9_000), "idle": Pace()}
    >>> most_slowed(paces, {"a": 2_000, "b": 9_000, "idle": 0}).node
    'a'
    """
    known = [
        Slowed(node, pace.latency_us, before_us[node])
        for node, pace in paces.items()
        if pace.latency_us and before_us.get(node)
    ]
    return max(known, key=lambda slowed: slowed.times, default=None)


@dataclass(slots=True)
class Foreground:
    """`ask` returns the pace of each live node."""

    ratio: float
    ask: Callable[[], Mapping[str, Pace]]
    clock: Clock = SYSTEM_CLOCK
    # The usual latency of each node when the work first saw it.
    _before_us: dict[str, int] = field(default_factory=dict)
    # The time since which a task has been waiting.
    _held_us: int | None = None

    def reason(self) -> str:
        """Why no task may begin now; empty if one may."""
        slowed = self._look()
        if slowed is None:
            self._held_us = None
            return ""
        now_us = self.clock.steady_us()
        self._held_us = now_us if self._held_us is None else self._held_us
        return str(slowed) if now_us - self._held_us < PATIENCE_US else ""

    def begin(self) -> None:
        """A task begins: the next one may have to wait again."""
        self._held_us = None

    def _look(self) -> Slowed | None:
        paces = self.ask()
        for node, pace in paces.items():
            if pace.usual_us:
                self._before_us.setdefault(node, pace.usual_us)
        slowed = most_slowed(paces, self._before_us)
        return slowed if slowed is not None and slowed.times > self.ratio else None
