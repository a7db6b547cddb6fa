"""What the commits that a node has applied wrote and relied upon, for validation before the sequencer lock.

**Invariant:** for every key hash, the newest applied sequence that wrote (or shared) it is on record as long as an open
or future snapshot of this node can be below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seachange.model.ids import IndexId, KeyHash, Seq
from seachange.model.log import LogEntry
from seachange.model.segments import Segment

_PRUNE_MIN = 20_000


class ConflictMap:
    def __init__(self) -> None:
        self._written: dict[KeyHash, Seq] = {}
        self._shared: dict[KeyHash, Seq] = {}
        self._touched: dict[IndexId, Seq] = {}
        self._bulk: list[tuple[Seq, frozenset[IndexId], tuple[Segment, ...]]] = []
        self._prune_at = _PRUNE_MIN

    def add(self, entry: LogEntry) -> None:
        for key in entry.writes:
            self._written[key] = entry.seq
        for key in entry.shares:
            self._shared[key] = entry.seq
        for index_id in entry.touched:
            self._touched[index_id] = entry.seq
        if entry.bulk:
            self._bulk.append((entry.seq, frozenset(entry.bulk), entry.segments))

    def find(self, writes: Mapping[KeyHash, Seq], shares: Mapping[KeyHash, Seq]) -> Seq | None:
        """The sequence of a commit that conflicts with keys, each computed at the snapshot it maps to."""
        for key, snapshot in writes.items():
            newest = max(self._written.get(key, 0), self._shared.get(key, 0))
            if newest > snapshot:
                return Seq(newest)
        for key, snapshot in shares.items():
            if self._written.get(key, 0) > snapshot:
                return self._written[key]
        return None

    def newest_touching(self, indexes: Iterable[IndexId]) -> Seq:
        """The newest commit that wrote to any of these indexes; 0 if there is none on record."""
        return max((self._touched.get(index_id, Seq(0)) for index_id in indexes), default=Seq(0))

    def bulk_since(self, snapshot: Seq, touched: Iterable[IndexId]) -> list[tuple[Seq, tuple[Segment, ...]]]:
        """The bulk commits above `snapshot` on any of these indexes: they listed no keys."""
        wanted = frozenset(touched)
        return [(seq, segments) for seq, indexes, segments in self._bulk if seq > snapshot and indexes & wanted]

    def prune(self, mark: Seq) -> None:
        """Forgets what no snapshot at or above `mark` can conflict with, when that is worth the walk."""
        if len(self._written) + len(self._shared) >= self._prune_at:
            self._written = {key: seq for key, seq in self._written.items() if seq > mark}
            self._shared = {key: seq for key, seq in self._shared.items() if seq > mark}
            self._prune_at = max(_PRUNE_MIN, 2 * (len(self._written) + len(self._shared)))
        self._bulk = [bulk for bulk in self._bulk if bulk[0] > mark]
