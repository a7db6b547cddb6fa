"""The encoded keys of an image's inline entries in order, for look-ups by ranges of keys.

Keys arrive one by one and are put in order when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left, insort

# Up to so many keys are put in their places one by one; more are sorted along with the rest.
_INSERTED_MAX = 64


class OrderedKeys:
    __slots__ = ("_arrived", "_sorted")

    def __init__(self) -> None:
        self._sorted: list[bytes] = []
        self._arrived: list[bytes] = []

    def add(self, encoded: bytes) -> None:
        """A key that is not there yet."""
        self._arrived.append(encoded)

    def between(self, low: bytes, high: bytes, count_max: int) -> list[bytes]:
        """The first keys with low <= key < high, at most one more than `count_max`."""
        self._settle()
        first = bisect_left(self._sorted, low)
        return self._sorted[first : min(bisect_left(self._sorted, high, first), first + count_max + 1)]

    def _settle(self) -> None:
        if len(self._arrived) > _INSERTED_MAX:
            self._sorted += self._arrived
            self._sorted.sort()
        else:
            for encoded in self._arrived:
                insort(self._sorted, encoded)
        self._arrived = []
