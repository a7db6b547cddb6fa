"""The job log: records the progress of a job, and checks for pause and cancel requests.

**Invariant:** reported progress never decreases while the work continues, and each write compares the job's record with
the one that was read: a runner that was overtaken gets `Lost`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from seachange.changer.job import Job, StageDone, job_change, read_job, written
from seachange.changer.ports import SPARK_START, Changes, Lost, Pipeline
from seachange.model.change.work import UnitDone
from seachange.model.jobs import JobRequest
from seachange.planner.stages import Phase
from seachange.runtime.clock import Clock
from seachange.runtime.faults import reach

# How often long work polls for requests, and a validation records its progress.
POLL_US = 800_000
# The prefix of `waiting` for a job that waits for disk space.
SPACE = "space"


class Paused(Exception):
    """The job was asked to pause."""


class JobLog:
    """`on_update` is called with each recorded state of running work; `pause` raises if the work is to end."""

    def __init__(
        self,
        changes: Changes,
        pipeline: Pipeline,
        clock: Clock,
        pause: Callable[[float], None],
        on_update: Callable[[Job], None],
    ) -> None:
        self._changes = changes
        self._pipeline = pipeline
        self._clock = clock
        self._pause = pause
        self._on_update = on_update
        self._polled_us = 0

    def record(self, job: Job, event: str = "") -> Job:
        return written(job, self._changes.record(job_change(job, event)))

    def reread(self, job: Job) -> Job:
        """The job as recorded: steps of a stage may have progressed."""
        record = self._changes.read(job.id)
        if record is None or record.revision < job.revision or not self._changes.is_ours(record):
            raise Lost(f"job {job.id} does not exist, or another node has it")
        return read_job(record)

    # Requests.

    def reread_request(self, job: Job) -> JobRequest:
        record = self._changes.read(job.id)
        return record.request if record is not None else JobRequest.NONE

    def check_cancelled(self, job: Job) -> None:
        """Raises if the job is to be paused or cancelled, or was taken over."""
        self._polled_us = self._clock.steady_us()
        record = self._changes.read(job.id)
        if record is None or record.revision != job.revision:
            raise Lost(f"job {job.id} was taken over by another node")
        if record.request is JobRequest.PAUSE and not job.is_reverting:
            raise Paused
        if record.request is JobRequest.CANCEL and job.can_be_canceled:
            raise Lost(f"job {job.id} was canceled")

    def poll_requests(self, job: Job) -> bool:
        """Polls for requests, if that was not done for a while; returns whether it did."""
        due = self._clock.steady_us() - self._polled_us >= POLL_US
        if due:
            # Raises on an interrupt.
            self._pause(0)
            self.check_cancelled(job)
        return due

    # Progress.

    def keep(self, job: Job, number: int, unit: UnitDone) -> Job:
        units = (*job.units, (number, unit))
        rows_done = max(job.rows_done, sum(unit.rows for _, unit in units))
        kept = replace(job, units=units, rows_done=rows_done, waiting="")
        job = self.record(kept, _continuation(job))
        self._on_update(job)
        reach("job.unit")
        self.check_cancelled(job)
        return job

    def on_progress(self, job: Job, rows: int) -> Job:
        """Records the progress of running units from time to time. It never decreases."""
        if not self.poll_requests(job):
            return job
        done = sum(unit.rows for _, unit in job.units) + rows
        return self.record_progress(job, replace(job, rows_done=max(job.rows_done, done)))

    def record_progress(self, before: Job, job: Job) -> Job:
        """Records the progress of running work, and what it waits for; a wait for space is left as it is."""
        event = ""
        if not before.waiting.startswith(SPACE) and bool(before.waiting) != bool(self._pipeline.waiting):
            job = replace(job, waiting=self._pipeline.waiting)
            event = _interruption(job) if job.waiting else _continuation(before)
        if job != before:
            job = self.record(job, event)
        self._on_update(job)
        return job

    def stage_done(self, job: Job, phase: Phase, what: str, began_us: int, rows: int) -> Job:
        done = StageDone(phase, what, began_us, self._clock.wall_us() - began_us, rows)
        return replace(
            job,
            rows_before=job.rows_before + rows,
            rows_done=0,
            since_us=self._clock.wall_us(),
            waiting="",
            errors_met=0,
            stages=(*job.stages, done),
        )


def _interruption(job: Job) -> str:
    return f"waits for {job.waiting}" if job.waiting == SPARK_START else f"backs off: {job.waiting}"


def _continuation(job: Job) -> str:
    """The event of a job that continues."""
    if not job.waiting:
        return ""
    if job.waiting == SPARK_START:
        return "Spark has started"
    return "has disk space again" if job.waiting.startswith(SPACE) else "no longer backs off"
