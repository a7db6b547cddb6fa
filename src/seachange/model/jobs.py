"""Jobs as the catalog keeps them: what is left of a schema change after its statement has committed.

The catalog looks at the status, at what was asked of the job and at the files that it keeps; the body is the changer's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from seachange.model.ids import DescriptorId, Epoch, SegmentId, Seq

JobId = NewType("JobId", int)

# What an event is about that no job is concerned with.
NO_JOB = JobId(0)


class JobStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    REVERTING = "reverting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


# A job that is over holds no descriptor, keeps no file and is run by nobody.
FINISHED = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELED})


class JobRequest(StrEnum):
    """What was last asked of a job; whoever runs it looks at it between two steps."""

    NONE = ""
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """`revision` is raised by every change; `descriptors` are those that other changes wait for; `epoch` is the node
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
    """Part of a commit: the job as it is from then on, if it is still at revision `expected` (0: it is created).

    `files` are all segment files that the job keeps from then on; each is an intent of the epoch that commits, or kept
    by the job already. What it kept before, and neither keeps nor attaches now, is garbage. `event` is a line for the
    history, if there is something to tell.
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
