"""How fast the statements of a node's clients are: now, and as a rule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """The median of the last statements, and what it is as a rule; 0: not known, for there were too few."""

    latency_us: int = 0
    usual_us: int = 0
