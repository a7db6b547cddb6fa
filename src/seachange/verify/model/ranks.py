"""Sequence numbers replaced by ranks, so that histories of any length are finitely many.

Only the order of an event relative to the points that something still refers to (open snapshots, R, bases of
generations, the head) can be told apart. Of several events between two points the last one counts, and of those before
the first point the last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

# (sequence, ...), rising.
Events = tuple[tuple[Any, ...], ...]


def rank_events(events: Events, points: Sequence[int], lowest: int) -> Events:
    """`lowest` is the rank of the first point that is read."""
    out: list[tuple[Any, ...]] = []
    for event in events:
        rank = bisect_left(points, event[0])
        if out and (out[-1][0] == rank or rank <= lowest):
            out[-1] = (rank, *event[1:])
        else:
            out.append((rank, *event[1:]))
    return tuple(out)


def value_at(events: Events, sequence: int, otherwise: int) -> int:
    """The second field of the newest visible event."""
    value = otherwise
    for event in events:
        if event[0] > sequence:
            break
        value = event[1]
    return value
