"""The job of a transaction block, when the block ends.

**Invariant:** the publication of such a job is a part of the block's COMMIT, which carries its last record. Whatever
ends the block otherwise reverts the job, by one commit that raises its revision: a COMMIT that comes later is refused.
"""

from __future__ import annotations

from dataclasses import replace

from seachange.changer.job import Job, JobFailure, job_change
from seachange.changer.ports import Changes
from seachange.model.change.ops import SetState
from seachange.model.change.targets import GOAL_STATUS
from seachange.model.jobs import JobChange, JobStatus
from seachange.planner.plan import plan_revert
from seachange.planner.stages import Phase, Progress


def revert_at_once(job: Job, failure: JobFailure, changes: Changes) -> None:
    """Whatever the job has added is ABSENT from this commit on. Raises `Lost` if the job has gone on meanwhile."""
    phases = [job] if job.undo is None else [job, job.first_phase()]
    plans = [plan_revert(phase.change, phase.progress) for phase in phases]
    ops = [op for plan in plans for stage in plan.stages for op in plan.ops(stage)]
    mutations = [op for op in ops if isinstance(op, SetState)]
    ended = replace(
        job.restarted(),
        status=JobStatus.CANCELED,
        failure=failure,
        rows_total=job.rows_total,
        waiting="",
    )
    changes.publish(mutations, (), job_change(ended, f"reverted: {failure.message}"))


def published_record(job: Job) -> JobChange:
    """The record of a job that the COMMIT of its block ends."""
    statuses = tuple(GOAL_STATUS[target.goal] for target in job.change.targets)
    done = replace(
        job,
        progress=Progress(statuses, job.progress.unfenced),
        phase=Phase.NON_REVERTIBLE,
        passed=True,
        status=JobStatus.SUCCEEDED,
        waiting="",
        units=(),
    )
    return job_change(done, JobStatus.SUCCEEDED.value)
