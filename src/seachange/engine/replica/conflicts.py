"""The keys that applied commits wrote and relied upon, for validation before the sequencer lock.

**Invariant:** for every key hash, the newest applied sequence that wrote (or shared) it is on record as long as an open
or future snapshot of this node can be below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from seachange.model.ids import IndexId, KeyHash, Seq
from seachange.model.log import LogEntry
from seachange.model.segments import Segment
from seachange.storage.keys import Hashes

_PRUNE_MIN = 20_000
_LARGE_MIN = 10_000


class ConflictMap:
    def __init__(self) -> None:
        self._written: dict[KeyHash, Seq] = {}
        self._shared: dict[KeyHash, Seq] = {}
        self._touched: dict[IndexId, Seq] = {}
        # Commits of many keys: each key would cost a hundred bytes in the dictionaries above.
        self._large: list[tuple[Seq, Hashes]] = []
        self._bulk: list[tuple[Seq, frozenset[IndexId], tuple[Segment, ...]]] = []
        self._prune_at = _PRUNE_MIN

    def add(self, entry: LogEntry) -> None:
        if len(entry.writes) > _LARGE_MIN:
            self._large.append((entry.seq, np.sort(np.array(entry.writes, np.int64))))
        else:
            self._written.update(dict.fromkeys(entry.writes, entry.seq))
        for key in entry.shares:
            self._shared[key] = entry.seq
        for index_id in () if _moves(entry) else entry.touched:
            self._touched[index_id] = entry.seq
        if entry.bulk:
            self._bulk.append((entry.seq, frozenset(entry.bulk), entry.segments))

    def find(self, writes: Mapping[KeyHash, Seq], shares: Mapping[KeyHash, Seq]) -> Seq | None:
        """The sequence of a commit that conflicts with these keys, each of which maps to the snapshot at which it was
        read."""
        large = self._newest_large((*writes, *shares))
        for key, snapshot in writes.items():
            newest = max(self._written.get(key, 0), self._shared.get(key, 0), large.get(key, 0))
            if newest > snapshot:
                return Seq(newest)
        for key, snapshot in shares.items():
            newest = max(self._written.get(key, 0), large.get(key, 0))
            if newest > snapshot:
                return Seq(newest)
        return None

    def find_all(self, writes: Mapping[KeyHash, Seq], shares: Mapping[KeyHash, Seq]) -> dict[KeyHash, Seq]:
        """All conflicting keys, each with the sequence of the newest conflicting commit."""
        conflicts = {}
        for key, snapshot in writes.items():
            seq = self.find({key: snapshot}, {})
            if seq is not None:
                conflicts[key] = seq
        for key, snapshot in shares.items():
            seq = self.find({}, {key: snapshot})
            if seq is not None:
                conflicts[key] = seq
        return conflicts

    def find_listed(self, listed: Iterable[tuple[Hashes, Seq]]) -> Seq | None:
        """The same for long lists of written keys: here the recorded keys are looked up in the list."""
        for hashes, snapshot in listed:
            ordered = np.sort(hashes)
            for known in (self._written, self._shared):
                recent = {key: seq for key, seq in known.items() if seq > snapshot}
                hits = _common(ordered, np.fromiter(recent, np.int64, len(recent)))
                if len(hits):
                    return max(recent[KeyHash(int(key))] for key in hits)
            for seq, large in self._large:
                if seq > snapshot and len(_common(ordered, large)):
                    return seq
        return None

    def _newest_large(self, keys: Iterable[KeyHash]) -> Mapping[KeyHash, Seq]:
        """The keys that large commits have written, each with the newest such commit."""
        if not self._large:
            return {}
        wanted = np.fromiter(keys, np.int64)
        return {KeyHash(int(key)): seq for seq, large in self._large for key in _common(large, wanted)}

    def newest_touching(self, indexes: Iterable[IndexId]) -> Seq:
        """The newest commit that wrote to any of these indexes; 0 if there is none on record."""
        return max((self._touched.get(index_id, Seq(0)) for index_id in indexes), default=Seq(0))

    def bulk_since(self, snapshot: Seq, touched: Iterable[IndexId]) -> list[tuple[Seq, tuple[Segment, ...]]]:
        """The bulk commits above `snapshot` on any of these indexes; they list no keys."""
        wanted = frozenset(touched)
        return [(seq, segments) for seq, indexes, segments in self._bulk if seq > snapshot and indexes & wanted]

    def prune(self, mark: Seq) -> None:
        """Removes what no snapshot at or above `mark` can conflict with, if there is enough of it."""
        if len(self._written) + len(self._shared) >= self._prune_at:
            self._written = {key: seq for key, seq in self._written.items() if seq > mark}
            self._shared = {key: seq for key, seq in self._shared.items() if seq > mark}
            self._prune_at = max(_PRUNE_MIN, 2 * (len(self._written) + len(self._shared)))
        self._large = [large for large in self._large if large[0] > mark]
        self._bulk = [bulk for bulk in self._bulk if bulk[0] > mark]


def _moves(entry: LogEntry) -> bool:
    """Whether the commit touches an index without writing rows, because its rows are in another index from then on. A
    replacement by an empty index, as of TRUNCATE, has a generation."""
    return bool(entry.descriptors) and not (entry.batches or entry.segments or entry.generations)


def _common(ordered: Hashes, wanted: Hashes) -> Hashes:
    """The wanted hashes that are among the ordered ones."""
    if not len(ordered) or not len(wanted):
        return wanted[:0]
    places = np.minimum(ordered.searchsorted(wanted), len(ordered) - 1)
    hits: Hashes = wanted[ordered[places] == wanted]
    return hits
