"""The schema changes of a transaction block: those that its COMMIT publishes, and those that need states before.

A change in several stages has a job, whose hidden states child transactions have published up to the publication. Other
sessions know these versions (*published*); the block itself plans with another one (*synthetic*), in which its changes
are done (`model/schema/synthetic.py`).

**Invariant:** an index that was built in the block is read only as of snapshots that its first generation contains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from seachange.changer.block_stages import published_record
from seachange.changer.job import Job
from seachange.model.ids import DescriptorId, IndexId, Seq
from seachange.model.jobs import JobChange, JobId
from seachange.planner.block_plan import touched_by
from seachange.planner.plan import Change


@dataclass(frozen=True, slots=True)
class ChangesState:
    """`at_commit` are the changes that no job has taken along; `built` says since when an index can be read, `adopted`
    as of when the definition of a table was taken over that is newer than the snapshot."""

    at_commit: tuple[Change, ...] = ()
    jobs: tuple[Job, ...] = ()
    built: Mapping[IndexId, Seq] = field(default_factory=dict)
    adopted: Mapping[DescriptorId, Seq] = field(default_factory=dict)


class BlockChanges:
    def __init__(self) -> None:
        # Replaced as a whole: a mark is the state of then.
        self.state = ChangesState()
        # Whether child transactions have published anything, also if it was reverted since.
        self.has_run = False
        # Tables that a statement cannot change because others have, since the snapshot.
        self.outdated: set[DescriptorId] = set()

    def note(self, change: Change) -> None:
        """A change that the COMMIT publishes."""
        self.state = replace(self.state, at_commit=(*self.state.at_commit, change))

    def at_commit(self, ids: Collection[DescriptorId]) -> tuple[Change, ...]:
        """The changes of these descriptors, and those that came with them."""
        found: tuple[Change, ...] = ()
        known = set(ids)
        while True:
            more = tuple(change for change in self.state.at_commit if not known.isdisjoint(touched_by(change)))
            if more == found:
                return found
            found = more
            known |= {id_ for change in found for id_ in touched_by(change)}

    def add(self, job: Job, taken: Collection[Change], built: Mapping[IndexId, Seq]) -> None:
        """A job is at its publication; it has taken along some of the other changes."""
        left = tuple(change for change in self.state.at_commit if not any(change is one for one in taken))
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

    def owns(self, job_id: JobId) -> bool:
        return any(job.id == job_id for job in self.state.jobs)

    def is_readable(self, index_id: IndexId, snapshot: Seq) -> bool:
        since = self.state.built.get(index_id)
        return since is None or snapshot >= since

    def records(self) -> tuple[JobChange, ...]:
        """The records that the COMMIT carries."""
        return tuple(published_record(job) for job in self.state.jobs)
