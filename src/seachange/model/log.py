"""The commit log as values: what a commit asks for, how it ended, and what a follower reads.

**Invariant:** everything that changes the database is one `CommitRequest`, decided by the sequencer under one lock.

**Invariant:** a request carries its node's epoch and the descriptor versions that it depends on. A stale epoch, or a
version below `min_version`, is rejected in the catalog transaction that decides it; clocks only decide when an epoch
may be ended.

**Invariant:** a request has an id chosen by its client. Sent again, it returns the first outcome; looked up after a
lost connection and not found, it is tombstoned and can never commit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from seachange.model.ids import CommitId, DescriptorId, Epoch, GenerationId, IndexId, KeyHash, Seq
from seachange.model.jobs import JobChange
from seachange.model.locking import LockMode
from seachange.model.pace import Pace
from seachange.model.schema.objects import PublishedDescriptor
from seachange.model.segments import Generation, GenerationMember, InlineBatch, Segment


@dataclass(frozen=True, slots=True)
class DescriptorChange:
    """Publish a version of a descriptor, if the newest one is still `expected` (0: there is none yet).
    `name` is unique among the live descriptors; a dropped descriptor (body None) frees it."""

    id: DescriptorId
    expected: int
    version: int
    name: str
    body: str | None


@dataclass(frozen=True, slots=True)
class VersionRaise:
    """From this commit's sequence on, no commit planned with a version below `version` is accepted."""

    id: DescriptorId
    version: int


@dataclass(frozen=True, slots=True)
class GenerationChange:
    """Publish a generation of an index, if its newest one is still `expected` (None: there is none yet).
    `base` None stands for the sequence just before this commit's own: an index that is created complete, so that
    the rows which the same commit writes are already deltas above its base."""

    index_id: IndexId
    expected: GenerationId | None
    base: Seq | None
    members: tuple[GenerationMember, ...]


@dataclass(frozen=True, slots=True)
class RowViolation:
    """A row that violates a constraint which is not committed yet: the key of the constraint, which is among the shares
    of the same commit, what is wrong, and the session that wrote the row."""

    key: KeyHash
    text: str
    session: str


@dataclass(frozen=True, slots=True)
class RecordedViolation:
    violation: RowViolation
    seq: Seq


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """One transaction's commit.

    `validated`: the log was checked for conflicts up to here, so only later entries are checked under the lock.
    `writes`: hashes of entries and unique keys written; `shares`: hashes of parent keys that it depends on. `bulk`:
    indexes written without listing keys: any unchecked commit on one of them returns the request (`Revalidate`) to be
    checked outside the lock. `touched`: every index written, `bulk` included. `oldest`: the oldest snapshot that any of
    it was computed at; below the log's floor it can no longer be checked. `actor`: the lock owner whose locks do not
    conflict with it. `reads`: hashes that must not have been written above `validated`. Unlike `shares` they are not
    recorded: a later commit may write them. `violations` are recorded for the message of the transaction that adds the
    constraint. `scopes`: the actor's locks of these scopes end with the commit. `change` is the record of the schema
    change that it publishes (`model/change_history.py`), empty if it publishes none.
    """

    commit_id: CommitId
    validated: Seq
    oldest: Seq
    versions: tuple[tuple[DescriptorId, int], ...] = ()
    writes: tuple[KeyHash, ...] = ()
    shares: tuple[KeyHash, ...] = ()
    bulk: tuple[IndexId, ...] = ()
    touched: tuple[IndexId, ...] = ()
    batches: tuple[InlineBatch, ...] = ()
    segments: tuple[Segment, ...] = ()
    descriptors: tuple[DescriptorChange, ...] = ()
    raises: tuple[VersionRaise, ...] = ()
    generations: tuple[GenerationChange, ...] = ()
    jobs: tuple[JobChange, ...] = ()
    actor: int = 0
    reads: tuple[KeyHash, ...] = ()
    violations: tuple[RowViolation, ...] = ()
    scopes: tuple[int, ...] = ()
    change: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    seq: Seq
    timestamp_us: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another commit wrote, or depended on, a key of this one."""

    seq: Seq


@dataclass(frozen=True, slots=True)
class Revalidate:
    """The log above `validated` could not be decided by hashes: follow to `head`, check, submit again."""

    head: Seq


@dataclass(frozen=True, slots=True)
class Fenced:
    """Planned with a version of a descriptor that is below its min_version."""

    id: DescriptorId
    min_version: int


@dataclass(frozen=True, slots=True)
class StaleEpoch:
    """The node's epoch has ended."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class BelowFloor:
    """Computed at a snapshot whose later conflicts are no longer recorded."""

    floor: Seq


@dataclass(frozen=True, slots=True)
class Superseded:
    """A compare-and-set failed: the descriptor, generation or job is no longer the expected one, a name is taken, or a
    file can no longer be attached. `what` begins with the word for it."""

    what: str


@dataclass(frozen=True, slots=True)
class Burned:
    """The commit id was looked up while its outcome was unknown and found absent; it can never commit."""

    commit_id: CommitId


@dataclass(frozen=True, slots=True)
class CommitBlocked:
    """Only another transaction's lock on `key` blocks the commit; it waits by requesting the lock with `strength`."""

    key: KeyHash
    strength: LockMode


Refusal = Conflict | Revalidate | Fenced | StaleEpoch | BelowFloor | Superseded | Burned | CommitBlocked
Outcome = Committed | Refusal


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A commit as its followers see it."""

    seq: Seq
    timestamp_us: int
    commit_id: CommitId
    writes: tuple[KeyHash, ...]
    shares: tuple[KeyHash, ...]
    bulk: tuple[IndexId, ...]
    touched: tuple[IndexId, ...]
    batches: tuple[InlineBatch, ...]
    segments: tuple[Segment, ...]
    descriptors: tuple[PublishedDescriptor, ...]
    generations: tuple[Generation, ...]


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A registered node; `low_water`: no open or future transaction of this epoch has a snapshot below it;
    `write_mark`: none that may write. `holders` names the holders of the latter, and the process, as JSON. `release` is
    the newest release of schema change rules that the node supports, `pace` the speed of its clients' statements.
    `answered`: every request for a table lock up to this number (`Catalog.answer_requests`)."""

    epoch: Epoch
    name: str
    live: bool
    low_water: Seq
    heartbeat_us: int
    expiry_ms: int
    format: int
    write_mark: Seq
    holders: str
    release: int
    pace: Pace
    answered: int = 0

    @property
    def process(self) -> str:
        """Its process (`name_process`); empty if it has not published it."""
        published = json.loads(self.holders)
        return str(published.get("process", "")) if isinstance(published, dict) else ""
