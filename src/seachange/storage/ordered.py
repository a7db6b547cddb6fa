"""The encoded keys of an image's inline entries in order, for lookups by key range.

Keys arrive one by one and are sorted on demand.
"""

from __future__ import annotations

from bisect import bisect_left, insort

# Up to this many keys are inserted one by one; more are sorted with the rest.
_INSERTED_MAX = 64


class OrderedKeys:
    __slots__ = ("_arrived", "_sorted")

    def __init__(self) -> None:
        self._sorted: list[bytes] = []
        self._arrived: list[bytes] = []

    def add(self, encoded: bytes) -> None:
        """Adds a key that is not present yet."""
        self._arrived.append(encoded)

    def between(self, low: bytes, high: bytes, count_max: int) -> list[bytes]:
        """The first keys with low <= key < high, at most one more than `count_max`."""
        self._sort_arrived()
        first = bisect_left(self._sorted, low)
        return self._sorted[first : min(bisect_left(self._sorted, high, first), first + count_max + 1)]

    def _sort_arrived(self) -> None:
        if len(self._arrived) > _INSERTED_MAX:
            self._sorted += self._arrived
            self._sorted.sort()
        else:
            for encoded in self._arrived:
                insort(self._sorted, encoded)
        self._arrived = []
