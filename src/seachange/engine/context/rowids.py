"""Hidden row ids: unique without coordination, ascending within a node."""

from __future__ import annotations

import threading

from seachange.model.ids import Epoch

_BITS = 36


class RowIds:
    """An epoch owns the ids whose upper bits are its number; the lower ones count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[Epoch, int] = {}

    def take(self, epoch: Epoch, count: int = 1) -> int:
        """The first of `count` consecutive ids."""
        with self._lock:
            first = self._next.get(epoch, 0)
            self._next[epoch] = first + count
        return (epoch << _BITS) + first
