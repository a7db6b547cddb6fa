"""The one interface to a catalog.

**Invariant:** every method is one catalog transaction. What changes the database goes through `commit`, whose
members are decided in order under one sequencer lock that is held until the transaction commits, so that sequence
order is visibility order. A method that reads for a snapshot checks the epoch and the floor after its reads, in the
same transaction, and raises `StaleNode` or `SnapshotTooOld`: a lost snapshot is an error, never fewer rows.

All methods may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seachange.model.descriptor import PublishedDescriptor
from seachange.model.ids import CommitId, DescriptorId, Epoch, IndexId, SegmentId, Seq
from seachange.model.log import CommitRequest, Committed, LogEntry, NodeRecord, Outcome
from seachange.model.segments import Generation, IndexContents

# The newest catalog format that this program reads and writes.
FORMAT = 1


class Catalog(Protocol):
    """A commit log shared by processes."""

    url: str

    def close(self) -> None: ...

    # Nodes. Expiry is judged by the catalog's own clock; only `live` decides, and only `expire_nodes` and
    # `end_node` clear it, under the sequencer lock.

    def register_node(self, name: str, expiry_ms: int) -> Epoch:
        """A new epoch, larger than every earlier one; its low-water mark starts at the head."""

    def heartbeat(self, epoch: Epoch, low_water: Seq) -> Seq:
        """Renews the epoch and publishes its mark (which never goes back); gives the head. StaleNode if it ended."""

    def end_node(self, epoch: Epoch) -> None: ...

    def expire_nodes(self) -> tuple[Epoch, ...]:
        """Ends every epoch whose heartbeat is older than its expiry; gives those."""

    def nodes(self) -> tuple[NodeRecord, ...]: ...

    # The log.

    def commit(self, epoch: Epoch, requests: Sequence[CommitRequest]) -> tuple[Outcome, ...]:
        """Decides the requests in order in one transaction, each accepted one with its own sequence. A request whose
        commit id is in the log already answers with that commit, whatever else it says."""

    def outcome(self, commit_id: CommitId) -> Committed | None:
        """How a commit ended whose answer was lost. None is final: the id is burned under the sequencer lock."""

    def head(self) -> Seq: ...

    def follow(self, epoch: Epoch, after: Seq) -> tuple[LogEntry, ...]:
        """All entries above `after`, in order, with their inline batches."""

    def sequence_at(self, timestamp_us: int) -> Seq:
        """The newest sequence whose commit timestamp is not after `timestamp_us`."""

    def floor(self) -> Seq: ...

    # State at a sequence.

    def descriptors(self, epoch: Epoch, at: Seq) -> tuple[PublishedDescriptor, ...]:
        """Of every descriptor that is live at `at`, its newest version published at or below it."""

    def index_contents(self, epoch: Epoch, index_id: IndexId, at: Seq) -> IndexContents:
        """The newest generation with base <= `at`, and the deltas with base < seq <= `at`."""

    def newest_generation(self, index_id: IndexId) -> Generation | None: ...

    def allocate_ids(self, count: int) -> range:
        """Fresh descriptor and index ids (one space for both)."""

    def min_versions(self) -> dict[DescriptorId, int]: ...

    # Files. An intent is registered before its file is written; `commit` turns the intents of the segments that
    # it attaches into references, in the same transaction.

    def reserve_segments(self, epoch: Epoch, count: int) -> range: ...

    def abandon_segments(self, epoch: Epoch, ids: Sequence[SegmentId]) -> None:
        """Gives up intents whose commit was definitely refused, so that their files are garbage at once."""

    def collect(self, epoch: Epoch, retention_us: int) -> tuple[SegmentId, ...]:
        """Raises the floor to the horizon (the lowest live mark, and the newest sequence older than the retention),
        forgets what no snapshot at or above it can reach (superseded generations and the deltas they hold, by the
        *swap's* sequence; key sets), and gives the segments whose files may be deleted: those forgotten, and intents
        whose epoch is dead or that were abandoned. They are given again until `forget_files`."""

    def forget_files(self, ids: Sequence[SegmentId]) -> None: ...

    # Exclusive work (compaction of one index, GC, later jobs).

    def claim(self, epoch: Epoch, resource: str) -> bool:
        """True if `epoch` now holds the resource: it was free, its own, or of a dead epoch."""

    def release(self, epoch: Epoch, resource: str) -> None: ...
