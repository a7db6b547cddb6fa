"""Jobs as statements of a session: they are run to their end, report progress, and end with the statement's cancel.

**Invariant:** a statement that has begun a job returns when the job is over, with the error of a job that was reverted,
or when it is ready and its publication is left to PUBLISH JOB.
A job that can no longer be reverted goes on without the statement.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from seachange import errors
from seachange.changer.job import Job, Queued, job_change, queue_job, read_job
from seachange.changer.ports import SPARK_START, Lost
from seachange.changer.queue import describe_queue
from seachange.engine.context.statement_context import SessionFacts
from seachange.engine.jobs.job_commits import NodeChanges
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.node.node import Node
from seachange.engine.transaction.transaction_jobs import cancel_if_possible
from seachange.model.jobs import FINISHED, JobId, JobRequest, JobStatus
from seachange.model.locking import NO_SCOPE, LockOwner, QueueMode
from seachange.model.statements import AlterTable, CreateIndex, DropIndex
from seachange.planner.exclusion import Exclusion, ExclusionDecision
from seachange.sql.change.running_changes import Busy
from seachange.sql.parsing.parse import Parsed
from seachange.sql.port.result import Result, table_column
from seachange.storage.keys import job_hash
from seachange.values.types import BIGINT

NOTICE_US = 1_000_000
_LOOK_SECONDS = 0.1
_MAY_BE_ROLLED_BACK = "the transaction may be rolled back, and CANCEL JOB ends the job for good"


class JobStatement:
    """A job that this node holds is run here; one that another node runs is only waited for."""

    def __init__(
        self, node: Node, client: SessionContext, notices: Callable[[str], None], drain_ms: int, lock_ms: int
    ) -> None:
        self._node = node
        self._actor = client.actor
        self._interrupts = client.interrupts
        self._notice = notices
        self._drain_ms = drain_ms
        self._lock_ms = lock_ms
        self._turned = False
        self._noticed_us = node.parts.clock.steady_us()

    def conditions(self) -> Conditions:
        return Conditions(self._pause, self._interrupts, self._report, self._drain_ms, self._lock_ms, self._actor)

    def run(self, job_id: JobId) -> None:
        conditions = self.conditions()
        try:
            job = self._node.jobs.run(job_id, conditions)
        except Lost:
            job = None
        except errors.QueryCanceled as problem:
            raise self._left(job_id, problem) from problem
        finally:
            self._node.jobs.let_go(job_id)
        if job is None or not job.is_finished:
            job = self.wait(job_id)
        if job.status is JobStatus.READY:
            self._notice(f"job {job_id} is ready: PUBLISH JOB {job_id} publishes it, CANCEL JOB {job_id} reverts it")
        answer(job)

    def wait(self, job_id: JobId) -> Job:
        """For a job that another node runs."""
        while True:
            # The node that runs the job waits for a catalog that is out of reach, and so does this statement.
            with suppress(errors.CatalogUnavailable):
                record = self._node.parts.catalog.job(job_id)
                if record is None:
                    raise errors.UndefinedObject(kind="job", name=str(job_id))
                job = read_job(record)
                if record.status in FINISHED or record.status is JobStatus.READY:
                    return job
                self._report(job)
            try:
                self._interrupts.pause(_LOOK_SECONDS)
            except errors.QueryCanceled as problem:
                raise self._left(job_id, problem) from problem

    def _left(self, job_id: JobId, problem: errors.Error) -> errors.Error:
        """The error of a statement that was cancelled before its job is over: the node that runs the job reverts it,
        unless that is impossible."""
        try:
            cancel_if_possible(self._node.parts.catalog, job_id)
            record = self._node.parts.catalog.job(job_id)
        except errors.Error:
            hint = (
                f"The catalog is out of reach: job {job_id} goes on when it is back. CANCEL JOB {job_id} ends it then."
            )
            return errors.remembered(problem.sqlstate, str(problem), hint)
        if record is None or record.request is JobRequest.CANCEL or record.status in FINISHED:
            return problem
        hint = f"Job {job_id} is past its point of no return and goes on; SHOW JOB {job_id} shows it."
        return errors.remembered(problem.sqlstate, str(problem), hint)

    def stand_behind(self, jobs: Mapping[JobId, Exclusion], in_block: bool = False) -> None:
        """Waits for changes that are under way; those that this statement makes useless are cancelled first, but not by
        a block, which may be rolled back."""
        begun_us = self._node.parts.clock.steady_us()
        for job_id, exclusion in jobs.items():
            cancels = exclusion.answer is ExclusionDecision.CANCEL and not in_block
            reason = exclusion.reason if cancels or exclusion.answer is ExclusionDecision.WAIT else _MAY_BE_ROLLED_BACK
            self._notice(f"waits for {self._name(job_id)}: {reason}")
            if cancels:
                cancel_if_possible(self._node.parts.catalog, job_id)
            if not self._is_over(job_id):
                # The process that has run it may be gone, and then the job is reverted here.
                self._node.jobs.wake()
                self._wait_behind(job_id, begun_us)

    def _wait_behind(self, job_id: JobId, begun_us: int) -> None:
        """Until the job is over. It does not wait for this session: a drain leaves out sessions that wait for jobs."""
        owner = LockOwner(self._actor, NO_SCOPE)
        with self._node.epoch.shared.queued(owner, job_hash(job_id), QueueMode.JOB) as check:
            while not self._is_over(job_id):
                waited_ms = (self._node.parts.clock.steady_us() - begun_us) // 1_000
                if self._lock_ms and waited_ms >= self._lock_ms:
                    raise errors.LockNotAvailable(detail=f"lock_timeout has passed behind {self._name(job_id)}")
                self._interrupts.pause(_LOOK_SECONDS)
                check()

    def _name(self, job_id: JobId) -> str:
        """The job with its statement, and the session whose transaction block it belongs to."""
        record = self._node.parts.catalog.job(job_id)
        if record is None:
            return f"job {job_id}"
        job, held = read_job(record), ""
        if job.owner is not None:
            nodes = {node.epoch: node.name for node in self._node.parts.catalog.nodes()}
            held = f" of the transaction block of {job.owner.session}, node {nodes.get(record.epoch, '?')}"
        return f"job {job_id} ({job.statement}){held}"

    def _is_over(self, job_id: JobId) -> bool:
        record = self._node.parts.catalog.job(job_id)
        return record is None or record.status in FINISHED

    def _pause(self, seconds: float) -> None:
        # A job that is being reverted is reverted as a whole, although the statement was cancelled.
        if self._turned:
            threading.Event().wait(seconds)
        else:
            self._interrupts.pause(seconds)

    def _report(self, job: Job) -> None:
        self._turned = job.is_reverting
        now_us = self._node.parts.clock.steady_us()
        if now_us - self._noticed_us >= NOTICE_US:
            self._noticed_us = now_us
            self._notice(describe(job))


def describe(job: Job) -> str:
    if job.waiting == SPARK_START:
        return f"job {job.id}: {job.status}, {job.stage}, starting Spark"
    rows = f", {job.rows_read} of {max(job.rows_total, job.rows_read)} rows" if job.rows_total else ""
    waits = f", waits for {job.waiting}" if job.waiting else ""
    return f"job {job.id}: {job.status}, {job.stage or 'done'}, {job.fraction_done:.0%}{rows}{waits}"


def is_asynchronous(statement: Parsed, concurrently: str) -> bool:
    """Whether the statement gives the id of its job at once."""
    match statement:
        case AlterTable(concurrently=True):
            return True
        case CreateIndex(concurrently=True) | DropIndex(concurrently=True):
            return concurrently == "async"
        case _:
            return False


def job_result(tag: str, job_id: JobId) -> Result:
    return Result(tag, (table_column("job_id", BIGINT),), [(job_id,)], 1)


def enqueue(node: Node, statement: str, queued: Queued) -> JobId:
    """Leaves a statement to the workers, who begin it when the jobs before it are over."""
    job_id = node.parts.catalog.new_job_id()
    waiting = describe_queue(queued.behind)
    job = queue_job(job_id, statement, queued, waiting)
    try:
        NodeChanges(node.parts, node.epoch).record(job_change(job, f"queued: {statement}; waits for {waiting}"))
    except Lost as lost:
        # No other node knows of the job yet: only the node's epoch can have ended.
        raise errors.StaleNode(node=node.name) from lost
    node.jobs.wake()
    return job_id


def answer(job: Job) -> None:
    """Raises the error of a job that was reverted."""
    if job.failure is not None:
        raise errors.remembered(job.failure.sqlstate, job.failure.message, job.failure.hint)


@dataclass(frozen=True, slots=True)
class SessionJobs:
    """The jobs of one session, with the limits that its settings give them."""

    node: Node
    facts: SessionFacts
    client: SessionContext
    notices: list[str]
    show: Callable[[str], bool]

    def report(self, notice: str) -> None:
        """At once if the client reads, else with the result of the statement."""
        if not self.show(notice):
            self.notices.append(notice)

    def statement(self) -> JobStatement:
        typed = self.facts.values.typed
        limits = typed.drain_timeout_ms, typed.lock_timeout_ms
        return JobStatement(self.node, self.client, self.report, *limits)

    def hold(self, job_id: JobId) -> None:
        self.node.jobs.hold(job_id)

    def let_go(self, job_id: JobId) -> None:
        self.node.jobs.let_go(job_id)

    def queue(self, text: str, busy: Busy) -> JobId:
        """Queues a statement behind the jobs that it has to wait for."""
        behind = tuple(sorted(busy.jobs))
        facts = self.facts
        return enqueue(
            self.node, text, Queued(facts.user, facts.database, facts.values.given(), busy.descriptors, behind)
        )
