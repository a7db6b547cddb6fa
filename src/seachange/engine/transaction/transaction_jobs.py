"""Jobs as statements see and begin them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from seachange import errors
from seachange.changer.job import Job, job_change
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.transaction.job_requests import ask_job
from seachange.model.jobs import JobId, JobRecord, JobRequest, JobStatus
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Phase, Progress
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
        return self.state.parts.catalog.jobs(unfinished=True)

    def request_job(self, job_id: JobId, request: JobRequest) -> None:
        if not self.state.rights.actor.superuser:
            raise errors.InsufficientPrivilege(detail="permission denied: only superusers change jobs")
        ask_job(self.state.parts.catalog, job_id, request)

    def launch(self, statement: str, plan: ChangePlan, progress: Progress, phase: Phase, passed: bool) -> JobId:
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
        )
        # It may begin with a wait, and publish nothing yet.
        for id_ in job.descriptors:
            self.state.declared.changed.setdefault(change_hash(id_), self.state.snapshot.seq)
        self.state.declared.jobs.append(job_change(job, f"began: {statement}"))
        return job.id
