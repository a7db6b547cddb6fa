"""The schema changes of a transaction block: those that its COMMIT publishes, and those that need states before.

A change in several stages has a job, whose hidden states child transactions have published up to the publication. Other
sessions know these versions (*published*); the block itself plans with another one (*synthetic*), in which its changes
are done (`model/schema/synthetic.py`).

**Invariant:** an index that was built in the block is read only as of snapshots that its first generation contains. Of
a primary index, a block that keeps an earlier snapshot reads a copy of its own, with the rows of that snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from seachange import errors
from seachange.changer.block_stages import published_record
from seachange.changer.job import Job
from seachange.engine.replica.epoch import EpochState
from seachange.model.change.elements import ColumnElement
from seachange.model.change_history import PlannedChange
from seachange.model.ids import ColumnId, DescriptorId, IndexId, SegmentId, Seq, TableId
from seachange.model.jobs import JobChange, JobId
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.objects import Descriptor
from seachange.planner.block_plan import part_of, touched_by
from seachange.planner.plan import Change
from seachange.storage.image import IndexImage
from seachange.storage.keys import Hashes


@dataclass(frozen=True, slots=True)
class PastRows:
    """The rows of the snapshot in a primary index that is complete `since` a later commit; `changed` are the hashes of
    its keys whose rows others have changed in between, when no writer knew of it."""

    image: IndexImage
    since: Seq
    changed: Hashes


@dataclass(frozen=True, slots=True)
class ChangesState:
    """`at_commit` are the changes that no job has taken along; `built` says since when an index can be read, `adopted`
    as of when the definition of a table was taken over that is newer than the snapshot; `past` are the primary indexes
    of which the block reads a copy. `planned` are its statements, for the history of changes."""

    at_commit: tuple[Change, ...] = ()
    jobs: tuple[Job, ...] = ()
    built: Mapping[IndexId, Seq] = field(default_factory=dict)
    adopted: Mapping[DescriptorId, Seq] = field(default_factory=dict)
    past: Mapping[IndexId, PastRows] = field(default_factory=dict)
    planned: tuple[PlannedChange, ...] = ()


NO_CHANGES = ChangesState()


@dataclass(frozen=True, slots=True)
class ChildVersions:
    """Versions of a descriptor above `start`, up to one: those that child transactions of a job have published, and
    labels that others have given to it, since the block holds its coordination key."""

    start: int
    end: Descriptor


class BlockChanges:
    def __init__(self, epoch: EpochState) -> None:
        self._epoch = epoch
        # Replaced as a whole: a mark is the state of then.
        self.state = NO_CHANGES
        # Whether child transactions have published anything, also if it was reverted since.
        self.has_run = False
        # In the order of the jobs, also of those that were reverted.
        self._children: dict[tuple[JobId, DescriptorId], ChildVersions] = {}
        # Whether a savepoint was set.
        self.has_savepoint = False
        # Tables that a statement cannot change because others have, since the snapshot.
        self.outdated: set[DescriptorId] = set()
        # The files of copies, also of those that were undone.
        self.copied: list[SegmentId] = []

    def note(self, change: Change) -> None:
        """A change that the COMMIT publishes."""
        self.state = replace(self.state, at_commit=(*self.state.at_commit, change))

    def note_planned(self, planned: PlannedChange) -> None:
        self.state = replace(self.state, planned=(*self.state.planned, planned))

    def at_commit(self, ids: Collection[DescriptorId]) -> tuple[Change, ...]:
        """What changes that the COMMIT publishes do to these tables."""
        return _with_targets(part_of(change, ids) for change in self.state.at_commit)

    def add(self, job: Job, built: Mapping[IndexId, Seq], is_known: bool) -> None:
        """A job is at its publication. If other sessions know of it, it has taken along what the COMMIT would have done
        to its tables; else later jobs have to."""
        left = self.state.at_commit
        if is_known:
            ids = touched_by(job.change)
            left = _with_targets(part_of(change, ids, inside=False) for change in left)
        self.state = replace(
            self.state, at_commit=left, jobs=(*self.state.jobs, job), built={**self.state.built, **built}
        )

    def adopt(self, table_id: DescriptorId, seq: Seq, newer: Iterable[IndexId]) -> None:
        """The block plans with the definition of a table as of a sequence above its snapshot, at which there are newer
        indexes."""
        adopted, built = {**self.state.adopted, table_id: seq}, {**self.state.built, **dict.fromkeys(newer, seq)}
        self.state = replace(self.state, adopted=adopted, built=built)

    def planned_at(self, table_id: DescriptorId, snapshot: Seq) -> Seq:
        return self.state.adopted.get(table_id, snapshot)

    def jobs_since(self, mark: ChangesState) -> tuple[Job, ...]:
        return self.state.jobs[len(mark.jobs) :]

    def has_stored(self, table_id: TableId, column_id: ColumnId) -> bool:
        """Whether a job has rewritten the rows with the values of a column."""
        undone = (t.element for job in self.state.jobs if job.undo is not None for t in job.undo.targets)
        columns = (element for element in undone if isinstance(element, ColumnElement))
        return any((column.table_id, column.column_id) == (table_id, column_id) for column in columns)

    def owns(self, job_id: JobId) -> bool:
        return any(job.id == job_id for job in self.state.jobs)

    def seen_at(self, index_id: IndexId, snapshot: Seq) -> Seq:
        """As of when keys of an index are looked up. Whether a key is free does not depend on the snapshot."""
        return max(snapshot, self.state.built.get(index_id, snapshot))

    def note_children(self, job_id: JobId, start: int, end: Descriptor) -> None:
        """Child transactions of a job have published a version, or reverted it."""
        known = self._children.get((job_id, end.id))
        self._children[job_id, end.id] = ChildVersions(known.start if known is not None else start, end)

    def newest_child(self, id_: DescriptorId, version: int) -> Descriptor | None:
        """What child transactions have made of a version of a descriptor."""
        found = None
        for (_, changed), versions in self._children.items():
            if changed == id_ and versions.start <= version < versions.end.version:
                found, version = versions.end, versions.end.version
        return found

    def show_past(self, index_id: IndexId, past: PastRows) -> None:
        self.state = replace(self.state, past={**self.state.past, index_id: past})

    def image(self, table: Table, index: Index, at: Seq) -> IndexImage:
        past = self.state.past.get(index.id)
        if past is not None and at < past.since:
            return past.image
        if index.id == table.primary.id and not self.is_readable(index.id, at):
            # Its deltas alone are not the rows of the table.
            raise errors.Bug(detail=f"table {table.name} is read at {at}, below the base of its new primary index")
        return self._epoch.image(table, index, at)

    def whole_at(self, index_id: IndexId, seq: Seq) -> Seq:
        """The first sequence from another one on as of which others know the index, too."""
        past = self.state.past.get(index_id)
        return seq if past is None else max(seq, past.since)

    def is_readable(self, index_id: IndexId, snapshot: Seq) -> bool:
        since = self.state.built.get(index_id)
        return since is None or snapshot >= since

    def records(self) -> tuple[JobChange, ...]:
        """The records that the COMMIT carries."""
        return tuple(published_record(job) for job in self.state.jobs)


def _with_targets(changes: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(change for change in changes if change.targets)
