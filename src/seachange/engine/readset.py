"""What a SERIALIZABLE transaction has read: rows by key, and tables by scan.

At commit nothing of it may have been written since the transaction's snapshot. The transaction then stands for one that
ran alone at its own sequence number, and the log is the serial order: so a transaction that writes nothing needs no
check at all, it stands where its snapshot is, between two commits that each are as if alone.

**Invariant:** a scan stands for its whole table, and so for rows that are not there yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from seachange.engine.conflicts import ConflictMap
from seachange.model.ids import IndexId, KeyHash, Seq


@dataclass(slots=True)
class ReadSet:
    """`indexes`: the primary index of every table that was read; `scanned`: those of them that were scanned."""

    keys: set[KeyHash] = field(default_factory=set)
    indexes: set[IndexId] = field(default_factory=set)
    scanned: set[IndexId] = field(default_factory=set)

    def add_keys(self, index_id: IndexId, keys: Iterable[KeyHash]) -> None:
        self.indexes.add(index_id)
        self.keys.update(keys)

    def add_scan(self, index_id: IndexId) -> None:
        self.indexes.add(index_id)
        self.scanned.add(index_id)

    def find_conflict(self, conflicts: ConflictMap, snapshot: Seq) -> Seq | None:
        """The sequence of a commit above `snapshot` that wrote something of it."""
        if not self.indexes:
            return None
        scanned = conflicts.newest_touching(self.scanned)
        if scanned > snapshot:
            return scanned
        # A bulk commit lists no keys: it is taken to have written what was read, or looked for.
        for seq, segments in conflicts.bulk_since(snapshot, self.indexes):
            if any(segment.index_id in self.indexes for segment in segments):
                return seq
        return conflicts.find({}, dict.fromkeys(self.keys, snapshot))
