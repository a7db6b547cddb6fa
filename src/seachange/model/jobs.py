"""Job records in the catalog: the rest of a schema change after its statement has committed.

The catalog reads the status, the request and the files of a job; the body belongs to the changer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from seachange.model.ids import DescriptorId, Epoch, IndexId, SegmentId, Seq, TableId

JobId = NewType("JobId", int)

# The job id of an event that concerns no job.
NO_JOB = JobId(0)


class JobStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    # All but the publication is done, which waits for PUBLISH JOB.
    READY = "ready"
    REVERTING = "reverting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


# A finished job locks no descriptor, keeps no file, and no node runs it.
FINISHED = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELED})

# A resting job locks its descriptors, and has no runner until it is asked for.
RESTING = frozenset({JobStatus.PAUSED, JobStatus.READY})


class JobRequest(StrEnum):
    """The last request to a job; the node that runs it checks between two steps."""

    NONE = ""
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    PUBLISH = "publish"


@dataclass(frozen=True, slots=True)
class ShownBuild:
    """An index that a job builds, as pg_stat_progress_create_index shows it. `session` is the one whose transaction
    block the job belongs to, or None."""

    job_id: JobId
    session: int | None
    database: str
    table_id: TableId
    index_id: IndexId
    phase: str
    rows_total: int
    rows_done: int


@dataclass(frozen=True, slots=True)
class JobRecord:
    """`revision` is raised by every change; `descriptors` are those for which other changes wait; `epoch` is the node
    that made the last change, in commit `updated_seq`."""

    id: JobId
    revision: int
    status: JobStatus
    request: JobRequest
    descriptors: tuple[DescriptorId, ...]
    body: str
    epoch: Epoch
    created_us: int
    updated_us: int
    updated_seq: Seq


@dataclass(frozen=True, slots=True)
class JobChange:
    """Part of a commit: the new state of a job, if it is still at revision `expected` (0: it is created).

    `files` are all segment files that the job keeps from then on; each is an intent of the committing epoch, or already
    kept by the job. Files that it kept before and neither keeps nor attaches now are garbage. `event` is a line for the
    history, if any.
    """

    id: JobId
    expected: int
    status: JobStatus
    descriptors: tuple[DescriptorId, ...]
    body: str
    files: tuple[SegmentId, ...] = ()
    event: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the history of the database."""

    timestamp_us: int
    job_id: JobId
    seq: Seq
    text: str
