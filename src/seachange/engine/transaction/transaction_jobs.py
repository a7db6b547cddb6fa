"""Jobs as statements see and begin them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.changer.job import Job, job_change, read_job
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.transaction.change_history import plan_change
from seachange.model.ids import DescriptorId
from seachange.model.isolation import Isolation
from seachange.model.jobs import FINISHED, JobId, JobRecord, JobRequest, JobStatus
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Phase, Progress
from seachange.planner.strategy import Cost
from seachange.storage.keys import change_hash


@dataclass(frozen=True, slots=True)
class TransactionJobs:
    """`JobPort`."""

    state: TransactionState

    @property
    def asks_for_job(self) -> bool:
        return self.state.mode.asks_for_job

    @property
    def queue_place(self) -> JobId | None:
        queued = self.state.mode.queued
        return queued.id if queued is not None else None

    def unfinished_jobs(self) -> tuple[JobRecord, ...]:
        """Those of others."""
        found = self.state.parts.catalog.jobs(unfinished=True)
        return tuple(record for record in found if not self.state.block.owns(record.id))

    def can_change(self, ids: Collection[DescriptorId]) -> bool:
        """Such a block holds their coordination keys since it found no job: one that came in between would have been a
        conflict."""
        state = self.state
        is_block = not state.mode.autocommit and state.write_locks.held.waits
        holds = is_block and all(change_hash(id_) in state.declared.changed for id_ in ids)
        return holds and state.isolation is Isolation.READ_COMMITTED

    def request_job(self, job_id: JobId, request: JobRequest) -> None:
        if not self.state.rights.actor.superuser:
            raise errors.InsufficientPrivilege(detail="permission denied: only superusers change jobs")
        ask_job(self.state.parts.catalog, job_id, request)

    def launch(
        self, statement: str, plan: ChangePlan, progress: Progress, phase: Phase, passed: bool, cost: Cost
    ) -> JobId:
        """The rest of a plan becomes a job when this transaction commits."""
        job = self.state.mode.queued
        if job is None:
            job = Job(self.state.parts.catalog.new_job_id(), statement, plan.change, progress, phase, passed)
        job = replace(
            job,
            change=plan.change,
            sequel=plan.sequel,
            progress=progress,
            phase=phase,
            passed=passed,
            status=JobStatus.RUNNING,
            queued=None,
            waiting="",
            drain_ms=self.state.mode.drain_ms,
            settings=self.state.mode.job_settings,
            planned=None if passed and plan.sequel is None else plan_change(self.state, statement, cost),
        )
        if passed and plan.sequel is not None:
            # The commit of this transaction has done all of the first change.
            job = replace(job.second_phase(), begun_after=self.state.snapshot.seq)
        # It may begin with a wait, and publish nothing yet.
        for id_ in job.descriptors:
            self.state.declared.changed.setdefault(change_hash(id_), self.state.snapshot.seq)
        self.state.declared.jobs.append(job_change(job, f"began: {statement}"))
        return job.id


def ask_job(catalog: Catalog, job_id: JobId, request: JobRequest) -> None:
    """Requests to a job: pause, resume, cancel.

    **Invariant:** a cancel that was accepted takes effect: it is written at the revision at which the job was seen to
    be before its point of no return, and refuses whatever is published from that revision. Nothing that is asked later
    replaces it.
    """
    record = _find(catalog, job_id)
    if request is JobRequest.CANCEL:
        _cancel(catalog, record)
    elif record.status not in FINISHED and (reason := _unfit(record, request)) is not None:
        raise errors.NotInPrerequisiteState(detail=f"job {job_id} {reason}")
    elif record.status not in FINISHED and read_job(record).owner is not None:
        raise errors.NotInPrerequisiteState(detail=f"job {job_id} belongs to a transaction block, and ends with it")
    elif record.status is JobStatus.REVERTING or not catalog.request_job(job_id, request):
        raise _refusal(_find(catalog, job_id))


def _unfit(record: JobRecord, request: JobRequest) -> str | None:
    """Why a job cannot be asked for something in its state."""
    if record.status is JobStatus.READY and request is not JobRequest.PUBLISH:
        return "is ready: it can be published or cancelled"
    if request is not JobRequest.PUBLISH:
        return None
    if record.status is JobStatus.PAUSED:
        return "is paused: resume it first"
    return None if read_job(record).is_postponed else "is not held back: it publishes its change when it is done"


def _cancel(catalog: Catalog, record: JobRecord) -> None:
    while True:
        if record.status in FINISHED:
            raise _refusal(record)
        if not read_job(record).can_be_canceled:
            raise errors.JobPastReturn(job=record.id, status=record.status)
        if record.request is JobRequest.CANCEL or catalog.cancel_job(record.id, record.revision):
            return
        # It has moved on.
        record = _find(catalog, record.id)


def cancel_if_possible(catalog: Catalog, job_id: JobId) -> None:
    """Of a job that may be over, or past the point of no return, by now."""
    try:
        ask_job(catalog, job_id, JobRequest.CANCEL)
    except (errors.JobPastReturn, errors.NotInPrerequisiteState, errors.UndefinedObject):
        return


def _find(catalog: Catalog, job_id: JobId) -> JobRecord:
    record = catalog.job(job_id)
    if record is None:
        raise errors.UndefinedObject(kind="job", name=str(job_id))
    return record


def _refusal(record: JobRecord) -> errors.Error:
    if record.status in FINISHED:
        return errors.NotInPrerequisiteState(detail=f"job {record.id} is over: {record.status}")
    return errors.NotInPrerequisiteState(detail=f"job {record.id} is being reverted")
