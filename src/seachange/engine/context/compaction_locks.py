"""Who folds an index: one at a time, in this node and between nodes.

It only saves work: what keeps two folds apart is that a generation is swapped for the newest one, or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from seachange.catalog.port import Catalog
from seachange.model.ids import Epoch, IndexId


class CompactionLocks:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._held: set[IndexId] = set()

    @contextmanager
    def holding(self, epoch: Epoch, index_id: IndexId) -> Iterator[bool]:
        """Whether it is the caller's meanwhile; the catalog keeps nodes apart, not the threads of one."""
        with self._lock:
            is_free = index_id not in self._held
            self._held.add(index_id)
        if not is_free:
            yield False
            return
        resource = f"compact:{index_id}"
        try:
            is_ours = self._catalog.claim(epoch, resource)
            try:
                yield is_ours
            finally:
                if is_ours:
                    self._catalog.release(epoch, resource)
        finally:
            with self._lock:
                self._held.discard(index_id)
