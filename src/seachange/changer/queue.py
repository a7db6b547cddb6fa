"""The queue of statements that return at once and wait for earlier jobs.

**Invariant:** a queued statement is planned when all jobs that it was queued behind have succeeded, by the commit that
begins it, which compares its record like every other step. If one of them fails or is reverted, the statement fails
too: it was written for a schema that did not come about.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection
from dataclasses import replace

from seachange import errors
from seachange.changer.job import Job, JobFailure, canceled, job_change, read_job
from seachange.changer.ports import Changes, Lost, Stopped
from seachange.changer.retry_policy import Reaction, reaction_to
from seachange.model.jobs import JobId, JobRecord, JobRequest, JobStatus

# Begins the job; returns the jobs that block it, if there are any.
Begin = Callable[[Job], Collection[JobId]]


def is_due(record: JobRecord, unfinished: Collection[JobId]) -> bool:
    """Whether a job that may be queued can be advanced."""
    queued = read_job(record).queued
    if queued is None:
        return True
    asked = record.request in (JobRequest.CANCEL, JobRequest.PAUSE)
    return asked or not any(job_id in unfinished for job_id in queued.behind)


def advance(record: JobRecord, changes: Changes, begin: Begin) -> bool:
    """Advances a queued job; returns True if it has begun and is to be run."""
    job = read_job(record)
    if record.request is JobRequest.CANCEL:
        _end(job, JobStatus.CANCELED, canceled(job), changes)
        return False
    if record.request is JobRequest.PAUSE:
        changes.record(job_change(replace(job, status=JobStatus.PAUSED), "paused"))
        return False
    failure = _failure_before(job, changes)
    if failure is not None:
        _end(job, JobStatus.FAILED, failure, changes)
        return False
    return _begin(job, changes, begin)


def _begin(job: Job, changes: Changes, begin: Begin) -> bool:
    assert job.queued is not None
    try:
        in_the_way = begin(job)
    except errors.Error as problem:
        if reaction_to(problem, job.errors_met + 1) is not Reaction.REVERT:
            raise
        _end(job, JobStatus.FAILED, JobFailure(problem.sqlstate, str(problem), problem.hint), changes)
        return False
    except (Lost, Stopped):
        raise
    except Exception as problem:  # noqa: BLE001 - the outer edge of a job
        # A bug would occur again. The job log keeps the traceback.
        bug = errors.Bug(detail=f"{type(problem).__name__}: {problem}")
        _end(job, JobStatus.FAILED, JobFailure(bug.sqlstate, str(bug), bug.hint), changes, traceback.format_exc())
        return False
    if not in_the_way:
        return True
    # Other jobs have begun in between.
    behind = tuple(sorted({*job.queued.behind, *in_the_way}))
    queued = replace(job.queued, behind=behind)
    waiting = describe_queue(in_the_way)
    changes.record(
        job_change(replace(job, queued=queued, status=JobStatus.PENDING, waiting=waiting), f"waits for {waiting}")
    )
    return False


def _failure_before(job: Job, changes: Changes) -> JobFailure | None:
    """The failure of a job that this one is queued behind."""
    assert job.queued is not None
    for job_id in job.queued.behind:
        record = changes.read(job_id)
        if record is not None and record.status in (JobStatus.FAILED, JobStatus.CANCELED):
            other = read_job(record)
            if other.owner is not None:
                # A transaction block was rolled back: the statement is planned without it.
                continue
            reason = other.failure.message if other.failure is not None else ""
            problem = errors.QueuedBehindFailure(behind=job_id, status=record.status, reason=reason)
            return JobFailure(problem.sqlstate, str(problem), problem.hint)
    return None


def _end(job: Job, status: JobStatus, failure: JobFailure, changes: Changes, trace: str = "") -> None:
    ended = replace(job, status=status, failure=failure, waiting="")
    changes.record(job_change(ended, f"{status}: {failure.sqlstate}: {failure.message}\n{trace}".rstrip()))


def describe_queue(behind: Collection[JobId]) -> str:
    names = ", ".join(f"job {job_id}" for job_id in sorted(behind))
    return f"{names} to finish"
