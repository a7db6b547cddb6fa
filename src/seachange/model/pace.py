"""Statement latency of a node's clients: now, and usually."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """The median of the last statements, and its usual value; 0: unknown, since there were too few."""

    latency_us: int = 0
    usual_us: int = 0
