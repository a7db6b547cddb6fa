"""The catalog port.

**Invariant:** every method is one catalog transaction. Changes of the database go through `commit`, whose members are
decided in order under one sequencer lock that is held until the transaction commits, so that sequence order is
visibility order. A method that reads for a snapshot checks the epoch and the floor after its reads, in the same
transaction, and raises `StaleNode` or `SnapshotTooOld`: a lost snapshot is an error, never fewer rows.

All methods may be called from any thread.

**Invariant:** a heartbeat need not be durable when it is acknowledged. Every action based on a mark or an expiry
commits durably, and the log of the catalog's database keeps the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from seachange.model.change_history import PublishedChange
from seachange.model.exports import ExportRecord
from seachange.model.feeds import FeedRecord
from seachange.model.ids import CommitId, DescriptorId, Epoch, IndexId, KeyHash, SegmentId, Seq, TableId
from seachange.model.jobs import NO_JOB, Event, JobId, JobRecord, JobRequest
from seachange.model.locking import (
    CatalogTableLocks,
    LockHeld,
    LockMode,
    LockOwner,
    LockPolicy,
    LockQueues,
    LocksTaken,
    LockWait,
    LockWish,
)
from seachange.model.log import CommitRequest, Committed, LogEntry, NodeRecord, Outcome, RecordedViolation
from seachange.model.pace import Pace
from seachange.model.schema.objects import DroppedDescriptor, PublishedDescriptor
from seachange.model.schema.sequences import SequenceBlock, SequenceLimits, SequenceState
from seachange.model.segments import Generation, Holdings, IndexContents, KnownFiles
from seachange.model.sessions import AskedSession, Beat

# The newest catalog format that this program reads and writes.
FORMAT = 12


class ChangeWatch(Protocol):
    """Notifies one thread that other processes may have changed the catalog."""

    def wait(self, timeout_s: float) -> bool:
        """Waits for a change; returns whether something may have changed since the last call."""

    def wake(self) -> None:
        """Ends the wait; may be called from another thread."""

    def close(self) -> None: ...


class Catalog(Protocol):
    """A commit log shared by processes."""

    url: str

    def close(self) -> None: ...

    # The id of the database, which is also in its data folder (see engine/database/database_identity.py).

    def identity(self) -> str | None:
        """None if it has none yet, because it is new or comes from a release without ids."""

    def bind(self, identity: str) -> str:
        """Sets the id of the database if there is none; returns the id that it has."""

    def secret(self, proposed: str) -> str:
        """What the nodes of the database share and no copy of its catalog has: the proposed one, if there is none."""

    def move(self, epoch: Epoch, identity: str, files: int) -> bool:
        """Replaces the id of the database and ends all nodes but this one, in one step; False, and nothing is changed,
        if the catalog does not refer to exactly this number of files."""

    # Nodes. Expiry is judged by the catalog's own clock; only `live` decides, and only `expire_nodes` and `end_node`
    # clear it, under the sequencer lock.

    def register_node(self, name: str, expiry_ms: int, release: int = 1) -> Epoch:
        """Returns a new epoch, larger than every earlier one; its low-water mark starts at the head. Raises
        ReleaseTooOld for a node that does not know the agreed rules."""

    def agree_release(self, release: int) -> int:
        """The release of the rules by which changes are planned from now on: the newest that all live nodes know, up to
        the given one. It never decreases: a node that does not know it cannot join."""

    def heartbeat(
        self,
        epoch: Epoch,
        low_water: Seq,
        write_mark: Seq | None = None,
        holders: str = "[]",
        pace: Pace = Pace(),  # noqa: B008 - a value
    ) -> Beat:
        """Renews the epoch and publishes its marks (which never decrease; the write mark defaults to the low-water
        mark), the holders of the write mark, and the pace of statements; returns the head, and once each what was asked
        of its sessions. Raises StaleNode if the epoch has ended."""

    def ask_session(self, epoch: Epoch, asked: AskedSession) -> bool:
        """Asks something of a session of a node, which learns it with its next heartbeat; whether the node is live."""

    def end_node(self, epoch: Epoch) -> None: ...

    def expire_nodes(self) -> tuple[Epoch, ...]:
        """Ends every epoch whose heartbeat is older than its expiry; returns them."""

    def nodes(self) -> tuple[NodeRecord, ...]: ...

    # The log.

    def commit(self, epoch: Epoch, requests: Sequence[CommitRequest]) -> tuple[Outcome, ...]:
        """Decides the requests in order in one transaction; each accepted one gets its own sequence. A request whose
        commit id is in the log already is answered with that commit, whatever else it contains."""

    def outcome(self, commit_id: CommitId) -> Committed | None:
        """The result of a commit whose answer was lost. None is final: the id is tombstoned under the sequencer
        lock."""

    def head(self) -> Seq: ...

    def follow(self, epoch: Epoch, after: Seq, upto: Seq | None = None) -> tuple[LogEntry, ...]:
        """All entries above `after`, in order, with their inline batches. With `upto` those of the past up to there,
        without what indexes that were never public had, as far as it has been collected."""

    def first_reliance(self, epoch: Epoch, keys: Sequence[KeyHash], after: Seq) -> Seq | None:
        """The first commit above `after` that relied on one of the keys (`CommitRequest.shares`); None if there is
        none. Cheaper than reading a long log."""

    def first_violation(self, keys: Sequence[KeyHash], after: Seq) -> RecordedViolation | None:
        """What the first commit above `after` has recorded for one of the keys."""

    def sequence_at(self, timestamp_us: int) -> Seq:
        """The newest sequence whose commit timestamp is not after `timestamp_us`."""

    def floor(self) -> Seq: ...

    def watch(self) -> ChangeWatch:
        """Notified of new descriptors soon after they were published; almost free while nothing happens."""

    # Locks between nodes. Only live epochs hold any: they are taken under the sequencer lock and end with the epoch,
    # under the same lock. So a commit that writes a locked key is either below the `head` that the locker got, or finds
    # the lock and is refused (`Locked`).

    def take_locks(
        self,
        epoch: Epoch,
        owner: LockOwner,
        wishes: Sequence[LockWish],
        policy: LockPolicy,
        most: int,
    ) -> LocksTaken:
        """Grants wishes in order, at most `most`. At the first that must wait: WAIT enters the actor into the queue of
        that key and ends; NOWAIT ends; SKIP continues. An actor waits for one key at a time, and keeps its turn if it
        asks for that key again. A lock that is granted again is held in the stronger mode. Raises StaleNode if the
        epoch has ended."""

    def release_locks(self, epoch: Epoch, owner: LockOwner, keys: Sequence[KeyHash] | None = None) -> None:
        """Releases locks (None: all) of an owner, and the actor's place in a queue."""

    def release_scopes(self, epoch: Epoch, actor: int, scopes: Sequence[int]) -> None:
        """Releases all locks of an actor in these scopes, and its place in a queue."""

    def enter_queue(self, epoch: Epoch, owner: LockOwner, wish: LockWish) -> None:
        """Enters the actor into the queue of the key, even if nothing blocks it: a wait for something other than a
        lock."""

    def serve_first(self, wait: LockWait) -> None:
        """Gives a wait the first turn of all, if it is still there."""

    def lock_queues(self) -> LockQueues: ...

    def lock_holders(self, key: KeyHash) -> tuple[LockHeld, ...]: ...

    def locks_held(self, strength: LockMode) -> tuple[LockHeld, ...]:
        """All locks in one mode."""

    # Strong table locks. Nodes do not store the table locks that ordinary statements take; a request makes each live
    # node publish the conflicting locks of its open transactions, and is granted when all have answered.

    def request_lock(self, epoch: Epoch, owner: LockOwner, wish: LockWish) -> int:
        """Enters the actor into the queue of the key, even if nothing blocks it, notifies other nodes, and returns the
        request's number."""

    def answer_requests(self, epoch: Epoch, upto: int, held: Sequence[tuple[LockOwner, LockWish]] = ()) -> None:
        """Stores locks that are held already, unconditionally; this answers every request up to the number for the
        node."""

    def table_locks(self) -> CatalogTableLocks: ...

    # State at a sequence.

    def descriptors(self, epoch: Epoch, at: Seq) -> tuple[PublishedDescriptor, ...]:
        """The newest version published at or below `at` of every descriptor that is live at `at`."""

    def dropped(self) -> tuple[DroppedDescriptor, ...]:
        """Descriptors that were dropped and are still kept, in the order of the drops."""

    def index_contents(self, epoch: Epoch, index_id: IndexId, at: Seq) -> IndexContents:
        """The newest generation with base <= `at`, and the deltas with base < seq <= `at`."""

    def newest_generation(self, index_id: IndexId) -> Generation | None: ...

    def allocate_ids(self, count: int) -> range:
        """Fresh descriptor and index ids (one space for both)."""

    def min_versions(self) -> dict[DescriptorId, int]: ...

    # Sequences. Values that are taken are never returned again, whatever happens to the caller: each call is a
    # transaction of its own. A sequence that is restarted uses the next `run`.

    def draw_sequence(self, id_: DescriptorId, run: int, limits: SequenceLimits, count: int) -> SequenceBlock:
        """Takes at least one and at most `count` consecutive values. Raises SequenceExhausted."""

    def sequence_state(self, id_: DescriptorId, run: int) -> SequenceState | None:
        """None if no value was taken yet."""

    def set_sequence(self, id_: DescriptorId, run: int, state: SequenceState) -> None: ...

    def move_sequence(self, id_: DescriptorId, run: int, expected: SequenceState, state: SequenceState) -> bool:
        """Compare-and-set; returns whether the state was as expected."""

    # Files. An intent is registered before its file is written; `commit` turns the intents of the segments that it
    # attaches into references, in the same transaction.

    def reserve_segments(self, epoch: Epoch, count: int) -> range: ...

    def abandon_segments(self, epoch: Epoch, ids: Sequence[SegmentId]) -> None:
        """Drops intents whose commit was definitely refused, so that their files are garbage at once."""

    def collect(self, epoch: Epoch, retention_us: int) -> tuple[SegmentId, ...]:
        """Raises the floor to the horizon (the lowest live mark, the newest sequence older than the retention, and the
        lowest sequence that an export holds), removes what no snapshot at or above it can reach (superseded generations
        and the deltas they contain, by the *swap's* sequence; key sets), and returns the segments whose files may be
        deleted: the removed ones, and intents whose epoch is dead or that were abandoned. They are returned again until
        `forget_files`."""

    def forget_files(self, ids: Sequence[SegmentId]) -> None: ...

    # Exported snapshots, whose files other engines read.

    def record_export(self, epoch: Epoch, record: ExportRecord) -> None:
        """Adds an export, or replaces that of the same snapshot. Until it expires, the floor does not rise above the
        sequence that it holds. Raises StaleNode if the epoch has ended, SnapshotTooOld if the floor is above it."""

    def exports(self) -> tuple[ExportRecord, ...]:
        """All of them, by table and snapshot, including expired ones, until `forget_exports`."""

    def forget_exports(self, epoch: Epoch, table_id: TableId, snapshots: Sequence[int]) -> None:
        """Raises StaleNode if the epoch has ended: another node may have exported them again."""

    # Feeds: positions of consumers. The floor does not rise above the position of a feed that has not ended.

    def create_feed(self, record: FeedRecord) -> bool:
        """False if its database has a feed of that name. Raises FeedTooOld if the floor is above its position."""

    def feeds(self) -> tuple[FeedRecord, ...]: ...

    def advance_feed(self, database: str, name: str, position: Seq) -> None:
        """A position never decreases."""

    def end_feed(self, database: str, name: str, reason: str) -> None:
        """From now on it keeps nothing."""

    def drop_feed(self, database: str, name: str) -> None: ...

    def written_since(self, index_id: IndexId, after: Seq) -> tuple[int, int]:
        """Rows and bytes that the commits above `after` have written to an index."""

    def holdings(self) -> Holdings: ...

    def known_files(self) -> KnownFiles: ...

    def newest_files(self, most: int) -> tuple[SegmentId, ...]:
        """The attached files with the highest ids."""

    def copy_to(self, folder: Path) -> Seq:
        """Writes a copy as of one sequence to a folder; returns the sequence. In the copy no node is alive."""

    # Jobs. They are created and changed by `commit`, each by compare-and-set on its revision.

    def new_job_id(self) -> JobId: ...

    def jobs(self, unfinished: bool = False) -> tuple[JobRecord, ...]: ...

    def job(self, job_id: JobId) -> JobRecord | None: ...

    def request_job(self, job_id: JobId, request: JobRequest) -> bool:
        """Records a request for a job, without interfering with its runner. Returns False if there is no such job, it
        is finished, or it has been cancelled already, which is final."""

    def cancel_job(self, job_id: JobId, expected: int) -> bool:
        """Cancels a job that is at revision `expected`, and raises the revision, under the sequencer lock: a runner at
        that revision is refused. Returns False, without a request, if it is at another revision."""

    def log_event(self, text: str, job_id: JobId = NO_JOB) -> None:
        """Adds a line to the event log, which is kept for two weeks, like finished jobs."""

    def events(self) -> tuple[Event, ...]: ...

    def changes(self) -> tuple[PublishedChange, ...]:
        """The history of schema changes, oldest first. It is kept as long as events are, and limited in number."""

    # Exclusive work (compaction of one index, garbage collection).

    def claim(self, epoch: Epoch, resource: str) -> bool:
        """True if `epoch` now holds the resource: it was free, its own, or of a dead epoch."""

    def release(self, epoch: Epoch, resource: str) -> None: ...
