"""The one interface to a catalog.

**Invariant:** every method is one catalog transaction. What changes the database goes through `commit`, whose
members are decided in order under one sequencer lock that is held until the transaction commits, so that sequence
order is visibility order. A method that reads for a snapshot checks the epoch and the floor after its reads, in the
same transaction, and raises `StaleNode` or `SnapshotTooOld`: a lost snapshot is an error, never fewer rows.

All methods may be called from any thread.

**Invariant:** a heartbeat need not be durable when it is acknowledged. Every action based on a mark or an expiry
commits durably, and the log of the catalog's database keeps the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from seachange.model.ids import CommitId, DescriptorId, Epoch, IndexId, KeyHash, SegmentId, Seq
from seachange.model.jobs import NO_JOB, Event, JobId, JobRecord, JobRequest
from seachange.model.locking import CatalogTableLocks, LockHeld, LockOwner, LockPolicy, LockQueues, LocksTaken, LockWish
from seachange.model.log import CommitRequest, Committed, LogEntry, NodeRecord, Outcome
from seachange.model.pace import Pace
from seachange.model.schema.objects import DroppedDescriptor, PublishedDescriptor
from seachange.model.schema.sequences import SequenceBlock, SequenceLimits, SequenceState
from seachange.model.segments import Generation, Holdings, IndexContents, KnownFiles

# The newest catalog format that this program reads and writes.
FORMAT = 10


class ChangeWatch(Protocol):
    """Tells one thread that others may have changed the catalog."""

    def wait(self, timeout_s: float) -> bool:
        """Whether something may have changed since the last call, waiting for it if not."""

    def wake(self) -> None:
        """Ends the wait; may be called from another thread."""

    def close(self) -> None: ...


class Catalog(Protocol):
    """A commit log shared by processes."""

    url: str

    def close(self) -> None: ...

    # The id of the database, which its data folder has too (see engine/database/database_identity.py).

    def identity(self) -> str | None:
        """None: it has none yet, because it is new or comes from a release without ids."""

    def bind(self, identity: str) -> str:
        """Makes it the id of the database if there is none; gives the one that there is."""

    # Nodes. Expiry is judged by the catalog's own clock; only `live` decides, and only `expire_nodes` and
    # `end_node` clear it, under the sequencer lock.

    def register_node(self, name: str, expiry_ms: int, release: int = 1) -> Epoch:
        """A new epoch, larger than every earlier one; its low-water mark starts at the head. ReleaseTooOld for a node
        that does not know the rules which have been agreed on."""

    def agree_release(self, release: int) -> int:
        """The release of the rules by which changes are planned from now on: the newest that all live nodes know, up to
        the given one. It never goes back: nobody joins who does not know it."""

    def heartbeat(
        self,
        epoch: Epoch,
        low_water: Seq,
        write_mark: Seq | None = None,
        holders: str = "[]",
        pace: Pace = Pace(),  # noqa: B008 - a value
    ) -> Seq:
        """Renews the epoch and publishes its marks (which never go back; without one of its own, that of writers is the
        other one), who holds the writers' mark, and how fast statements are; gives the head. StaleNode if it ended."""

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

    def first_reliance(self, epoch: Epoch, keys: Sequence[KeyHash], after: Seq) -> Seq | None:
        """The first commit above `after` that relied on one of the keys (`CommitRequest.shares`); None if there is
        none. Cheaper than to follow the log where it is long."""

    def sequence_at(self, timestamp_us: int) -> Seq:
        """The newest sequence whose commit timestamp is not after `timestamp_us`."""

    def floor(self) -> Seq: ...

    def watch(self) -> ChangeWatch:
        """Hears of new descriptors soon after they were published, at next to no cost while nothing happens."""

    # Locks between nodes. Only live epochs have any: they are taken under the sequencer lock and end with the epoch,
    # under the same. So a commit that writes a locked key is either below the `head` that the locker was told, or
    # finds the lock and is sent back (`Locked`).

    def take_locks(
        self, epoch: Epoch, owner: LockOwner, wishes: Sequence[LockWish], policy: LockPolicy, most: int
    ) -> LocksTaken:
        """Grants wishes in order, at most `most`. At the first that must wait: WAIT enters the actor into the queue of
        that key and ends; NOWAIT ends; SKIP goes on. An actor waits for one key at a time: one that is asked for again
        keeps its turn. Whatever is granted again is held as before, or more strongly. StaleNode if the epoch ended."""

    def release_locks(self, epoch: Epoch, owner: LockOwner, keys: Sequence[KeyHash] | None = None) -> None:
        """Gives up locks (None: all) of an owner, and the actor's place in a queue."""

    def release_scopes(self, epoch: Epoch, actor: int, scopes: Sequence[int]) -> None:
        """Gives up all locks of an actor that end with one of the scopes, and its place in a queue."""

    def lock_queues(self) -> LockQueues: ...

    def lock_holders(self, key: KeyHash) -> tuple[LockHeld, ...]: ...

    # Strong table locks. Nodes do not write down the table locks that ordinary statements take; a request makes each
    # live node name those of its open transactions that conflict with it, and is granted when all have answered.

    def request_lock(self, epoch: Epoch, owner: LockOwner, wish: LockWish) -> int:
        """Enters the actor into the queue of the key, even if nothing stands in the way, lets other nodes know, and
        gives the request's number."""

    def answer_requests(self, epoch: Epoch, upto: int, held: Sequence[tuple[LockOwner, LockWish]] = ()) -> None:
        """Writes down locks that are held already, whatever else is there; with that the node has answered every
        request up to the number."""

    def table_locks(self) -> CatalogTableLocks: ...

    # State at a sequence.

    def descriptors(self, epoch: Epoch, at: Seq) -> tuple[PublishedDescriptor, ...]:
        """Of every descriptor that is live at `at`, its newest version published at or below it."""

    def dropped(self) -> tuple[DroppedDescriptor, ...]:
        """What was dropped and is still kept, in the order of the drops."""

    def index_contents(self, epoch: Epoch, index_id: IndexId, at: Seq) -> IndexContents:
        """The newest generation with base <= `at`, and the deltas with base < seq <= `at`."""

    def newest_generation(self, index_id: IndexId) -> Generation | None: ...

    def allocate_ids(self, count: int) -> range:
        """Fresh descriptor and index ids (one space for both)."""

    def min_versions(self) -> dict[DescriptorId, int]: ...

    # Sequences. What is taken is never given again, whatever becomes of who took it: each call is a transaction of
    # its own. A sequence that starts over does so under the next `run`.

    def draw_sequence(self, id_: DescriptorId, run: int, limits: SequenceLimits, count: int) -> SequenceBlock:
        """Takes at least one and at most `count` values that follow each other. SequenceExhausted."""

    def sequence_state(self, id_: DescriptorId, run: int) -> SequenceState | None:
        """None: nothing was taken yet."""

    def set_sequence(self, id_: DescriptorId, run: int, state: SequenceState) -> None: ...

    def move_sequence(self, id_: DescriptorId, run: int, expected: SequenceState, state: SequenceState) -> bool:
        """Sets it if it is as expected; whether it was."""

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

    def holdings(self) -> Holdings: ...

    def known_files(self) -> KnownFiles: ...

    def copy_to(self, folder: Path) -> Seq:
        """Writes a copy as of one sequence, which is given, into a folder. In the copy no node is alive."""

    # Jobs. They are created and changed by `commit`, each by compare-and-set on its revision.

    def new_job_id(self) -> JobId: ...

    def jobs(self, unfinished: bool = False) -> tuple[JobRecord, ...]: ...

    def job(self, job_id: JobId) -> JobRecord | None: ...

    def request_job(self, job_id: JobId, request: JobRequest) -> bool:
        """Asks something of a job, which does not disturb whoever changes it; False if there is none, it is over, or it
        was asked to be taken back before: that is not taken back by what is asked later."""

    def cancel_job(self, job_id: JobId, expected: int) -> bool:
        """Asks that a job which is at revision `expected` be taken back, and raises the revision, under the sequencer
        lock: whoever goes on from that revision is refused. False, and nothing is asked, if it is at another."""

    def tell(self, text: str, job_id: JobId = NO_JOB) -> None:
        """Adds a line to the history, which is kept for two weeks, as are jobs that are over."""

    def events(self) -> tuple[Event, ...]: ...

    # Exclusive work (compaction of one index, GC).

    def claim(self, epoch: Epoch, resource: str) -> bool:
        """True if `epoch` now holds the resource: it was free, its own, or of a dead epoch."""

    def release(self, epoch: Epoch, resource: str) -> None: ...
