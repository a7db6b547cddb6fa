"""The open transactions of a node, and the low-water mark that follows from them.

**Invariant:** `mark()` never exceeds the snapshot of any open or future transaction of this node. A transaction is
entered with the current mark as its bound *before* it reads the head, so that none slips in below a published mark.
"""

from __future__ import annotations

import threading
from itertools import count

from seachange.model.ids import Seq


class Registry:
    def __init__(self, head: Seq) -> None:
        self._lock = threading.Lock()
        self._tickets = count()
        self._bounds: dict[int, Seq] = {}
        self._head = head
        self._mark = head

    def enter(self) -> int:
        """Registers a transaction that is about to read the head; its bound is the mark as it stands."""
        with self._lock:
            ticket = next(self._tickets)
            self._bounds[ticket] = self._mark
            return ticket

    def enter_below(self, snapshot: Seq) -> int:
        """Registers a read of the past; it holds the mark where it is, so that GC does not come closer."""
        with self._lock:
            ticket = next(self._tickets)
            self._bounds[ticket] = min(self._mark, snapshot)
            return ticket

    def move(self, ticket: int, snapshot: Seq) -> None:
        """The transaction now reads at `snapshot`."""
        with self._lock:
            self._bounds[ticket] = snapshot

    def leave(self, ticket: int) -> None:
        with self._lock:
            self._bounds.pop(ticket, None)

    def advance(self, head: Seq) -> None:
        """The node has applied the log up to `head`: later transactions start at or above it."""
        with self._lock:
            self._head = max(self._head, head)

    def mark(self) -> Seq:
        """The mark to publish. It never goes back."""
        with self._lock:
            lowest = min(self._bounds.values(), default=self._head)
            self._mark = max(self._mark, min(lowest, self._head))
            return self._mark

    def __len__(self) -> int:
        return len(self._bounds)
