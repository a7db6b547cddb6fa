"""The child transactions of a session's block: jobs that are run up to their publication, and end with the block.

**Invariant:** the job of an open block is held by its session, so that no worker of the node runs it. A job that was
let go, and is not finished, is reverted by a worker, never continued.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from seachange import errors
from seachange.changer.job import BlockOwner, Job
from seachange.changer.ports import Lost
from seachange.engine.context.child_transactions import NextVersion
from seachange.engine.session.job_session import SessionJobs, answer
from seachange.model.ids import Epoch
from seachange.pipeline.kernels.overlay import BlockWrites


class BlockJobs:
    def __init__(self, jobs: SessionJobs) -> None:
        self._jobs = jobs
        self._manager = jobs.node.jobs
        self.owner = BlockOwner(jobs.client.name)

    @property
    def drain_ms(self) -> int:
        return self._jobs.facts.values.typed.drain_timeout_ms

    @property
    def job_settings(self) -> tuple[tuple[str, str], ...]:
        return self._jobs.facts.values.for_jobs()

    def report(self, notice: str) -> None:
        self._jobs.report(notice)

    def run(self, job: Job, versions: Sequence[NextVersion], epoch: Epoch, own_writes: BlockWrites) -> Job:
        current = self._jobs.node.epoch
        if current.epoch != epoch:
            raise errors.StaleNode(node=epoch)
        conditions = self._jobs.statement().conditions()
        self._manager.hold(job.id)
        try:
            job = self._manager.run_stages(job, versions, conditions, current, own_writes)
        except BaseException as problem:
            self.revert([job])
            if isinstance(problem, Lost):
                raise errors.SerializationFailure(detail=f"job {job.id} was cancelled") from problem
            raise
        if job.is_finished:
            self._manager.let_go(job.id)
            answer(job)
        return job

    def check(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if self._manager.was_reverted(job.id):
                detail = f"job {job.id}, which this transaction began, was cancelled"
                raise errors.SerializationFailure(detail=detail)

    def revert(self, jobs: Sequence[Job]) -> None:
        for job in reversed(jobs):
            # Another node has reverted it, or a worker will.
            with suppress(errors.Error, Lost):
                self._manager.revert(job.id)
        self.leave(jobs)

    def leave(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self._manager.let_go(job.id)
