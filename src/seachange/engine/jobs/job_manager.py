"""The jobs that a node runs: those of its sessions, and orphaned ones.

**Invariant:** a job is run by one runner at a time: within the node by `_held`, between nodes by the epoch in its
record. Both only save work; correctness comes from the compare-and-set of every step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from seachange import errors
from seachange.catalog.dead_nodes import end_dead_nodes
from seachange.changer.block_stages import revert_at_once
from seachange.changer.drain import DRAIN_TIMEOUT_MS, Drain
from seachange.changer.job import Job, canceled, job_change, read_job, rolled_back, written
from seachange.changer.ports import Lost, Stopped
from seachange.changer.queue import advance, is_due
from seachange.changer.runner import JobRunner
from seachange.engine.context.change_log import JobTrace
from seachange.engine.context.child_transactions import NextVersion
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.context.meters import CounterByName
from seachange.engine.context.problem_log import log_internal
from seachange.engine.context.watching import Watch
from seachange.engine.jobs.job_commits import Drainer, NodeChanges
from seachange.engine.jobs.restored_rows import RowRestorer
from seachange.engine.jobs.spark_pipeline import job_pipeline
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_epoch import NodeEpoch
from seachange.model.jobs import FINISHED, NO_JOB, RESTING, JobId, JobRecord, JobRequest, JobStatus
from seachange.pipeline.kernels.overlay import BlockWrites
from seachange.planner.rules.release import RELEASES
from seachange.runtime.faults import reach
from seachange.runtime.threads import start_thread

# Begins a queued job, as `Begin` does, unless it is interrupted.
BeginQueued = Callable[[Job, SessionInterrupts], Collection[JobId]]
# The interval between two searches for orphaned jobs.
ROUND_US = 1_000_000
# How often the threads that `stop` waits for are nudged.
_NUDGE_SECONDS = 0.1
# The maximum number of jobs that the worker runs concurrently.
RUNNING_MAX = 4


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a runner waits, its timeouts, and its progress callback. `pause` may raise to end the work; `actor` is the
    session that runs the job, 0 without one."""

    pause: Callable[[float], None]
    interrupts: SessionInterrupts
    on_update: Callable[[Job], None]
    # None: the setting of the statement that began the job.
    drain_timeout_ms: int | None = None
    lock_timeout_ms: int = 0
    actor: int = 0


class JobManager:
    def __init__(self, epoch: NodeEpoch, watch: Watch) -> None:
        """`watch` limits how much the process may grow during a task."""
        self._parts = epoch.parts
        self._epoch = epoch
        self._watch = watch
        self._lock = threading.Lock()
        self._held: set[JobId] = set()
        # Those of them that were reverted for another session, or another node.
        self._reverted: set[JobId] = set()
        # Jobs whose record or rules this program does not know.
        self._left: set[JobId] = set()
        # The last log message about each job that could not be run.
        self._noted: dict[JobId, str] = {}
        # The interrupts of the jobs that run in this node.
        self._running: dict[JobId, SessionInterrupts] = {}
        self._stop = threading.Event()
        self._awake = threading.Event()
        self._threads: list[threading.Thread] = []
        # If off, orphaned jobs of other nodes are left to other nodes; jobs of the node's own sessions run here.
        self.takes_up = True
        # For tests that control when jobs run.
        self.paused = False
        self.on_update: Callable[[Job], None] = lambda job: None
        # Begins a queued statement; if None, it is left to other nodes.
        self.begin: BeginQueued | None = None

    # Jobs of sessions.

    @contextmanager
    def holding(self, job_id: JobId) -> Iterator[None]:
        """Keeps the worker of this node from running the job."""
        self.hold(job_id)
        try:
            yield
        finally:
            self.let_go(job_id)

    def hold(self, job_id: JobId) -> bool:
        with self._lock:
            if job_id in self._held:
                return False
            self._held.add(job_id)
            return True

    def let_go(self, job_id: JobId) -> None:
        with self._lock:
            self._held.discard(job_id)
            self._reverted.discard(job_id)
        self.wake()

    def was_reverted(self, job_id: JobId) -> bool:
        """Whether a held job of an open transaction block is no more, so that the block cannot be committed."""
        return job_id in self._reverted

    def run(self, job_id: JobId, conditions: Conditions) -> Job:
        """Runs a job that the caller holds to its end or to a pause; raises `Lost` if another node has it."""
        record = self._parts.catalog.job(job_id)
        if record is None:
            raise errors.UndefinedObject(kind="job", name=str(job_id))
        job = read_job(record)
        if not self._knows(job):
            raise errors.UnknownRelease(release=job.change.release)
        epoch = self._epoch.live()
        runner = self._runner(epoch, conditions, job)
        try:
            with self._reachable(job_id, conditions.interrupts):
                if record.epoch != epoch.epoch or job.status in (*RESTING, JobStatus.PENDING):
                    job = runner.take(job)
                return runner.run(job)
        except Lost as lost:
            # The next attempt then uses a new epoch.
            epoch.ended = epoch.ended or isinstance(lost.__cause__, errors.StaleNode)
            raise

    def run_stages(
        self,
        job: Job,
        versions: Sequence[NextVersion],
        conditions: Conditions,
        epoch: EpochState,
        own_writes: BlockWrites,
    ) -> Job:
        """Creates the job of a transaction block, which the caller holds, and runs it up to its publication, or to its
        end if it fails."""
        changes = NodeChanges(self._parts, epoch, Drainer(job.id, conditions.actor))
        job = written(job, changes.begin(versions, job_change(job, f"began: {job.statement}")))
        reach("job.created")
        runner = self._runner(epoch, conditions, job, own_writes)
        with self._reachable(job.id, conditions.interrupts):
            return runner.run_to_publication(job)

    def revert(self, job_id: JobId) -> None:
        """Reverts the job of a transaction block that has ended without COMMIT; raises `Lost` if it has moved on. Later
        jobs of the block may be built on what it has added: they are reverted first."""
        record = self._parts.catalog.job(job_id)
        if record is None or record.status in FINISHED:
            return
        for each in (*self._later_of_block(record), record):
            job = read_job(each)
            failure = canceled(job) if each.request is JobRequest.CANCEL else rolled_back(job)
            with self._lock:
                # Before anything of it is gone.
                self._reverted |= self._held & {job.id}
            revert_at_once(job, failure, NodeChanges(self._parts, self._epoch.live()))

    def _later_of_block(self, record: JobRecord) -> list[JobRecord]:
        """The last one first."""
        owner, unfinished = read_job(record).owner, self._parts.catalog.jobs(unfinished=True)
        later = [each for each in unfinished if each.id > record.id and read_job(each).owner == owner]
        return sorted(later, key=lambda each: each.id, reverse=True)

    @contextmanager
    def _reachable(self, job_id: JobId, interrupts: SessionInterrupts) -> Iterator[None]:
        with self._lock:
            self._running[job_id] = interrupts
        try:
            yield
        finally:
            with self._lock:
                del self._running[job_id]
            # Discard a nudge that came too late.
            interrupts.was_nudged()

    def nudge(self) -> None:
        """Interrupts the jobs that run here and are to be paused or cancelled, since a long query does not poll."""
        asked = {record.id for record in self._parts.catalog.jobs(unfinished=True) if _is_to_stop(record)}
        with self._lock:
            for job_id in asked.intersection(self._running):
                self._running[job_id].nudge()

    def _runner(
        self,
        epoch: EpochState,
        conditions: Conditions,
        job: Job,
        own_writes: BlockWrites | None = None,
    ) -> JobRunner:
        changes = NodeChanges(self._parts, epoch, Drainer(job.id, conditions.actor))
        clock = self._parts.clock
        drain_ms = next(ms for ms in (conditions.drain_timeout_ms, job.drain_ms, DRAIN_TIMEOUT_MS) if ms is not None)
        meters = self._parts.meters
        drain = Drain(changes, clock, conditions.pause, drain_ms, conditions.lock_timeout_ms, meters.drains.observe)
        pipeline = job_pipeline(
            self._parts, epoch, conditions.interrupts, job, self._parts.retention.us, own_writes, self._watch
        )
        pipeline.foresee(job, changes.head())
        traced = JobTrace(self._parts.log, conditions.on_update)
        on_update = partial(_count_rows, traced, meters.pipeline_rows, [job.rows_read])
        restorer = RowRestorer(self._parts, epoch, conditions.interrupts)
        return JobRunner(
            changes, pipeline, restorer, drain, clock, conditions.pause, on_update, conditions.interrupts.was_nudged
        )

    # The worker.

    def step(self, now_us: int) -> int:
        """Starts what is not run by any node, and cuts what was asked to stop."""
        try:
            if not self.paused and not self._stop.is_set():
                self.nudge()
                self._revert_cancelled()
                self.take_up()
        except errors.Error:
            # The catalog is out of reach for now.
            pass
        except Exception as problem:  # noqa: BLE001 - without this thread no job of the node would be run any more
            self._note(NO_JOB, self._bug(problem))
        return now_us + ROUND_US

    def wait(self, seconds: float) -> None:
        self._awake.wait(seconds)
        self._awake.clear()

    def wake(self) -> None:
        self._awake.set()

    def stop(self) -> None:
        """Ends the jobs that run here, to be resumed by another node. Ends a step that is under way, too."""
        self._stop.set()
        for thread in self._threads:
            while thread.is_alive():
                # Repeated, since a thread that has just begun to wait may have missed a nudge.
                with self._lock:
                    for interrupts in self._running.values():
                        interrupts.nudge()
                thread.join(_NUDGE_SECONDS)

    def take_up(self) -> list[threading.Thread]:
        """Starts threads for orphaned jobs; returns the threads."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        begun = []
        for record in self.find_orphans():
            if len(self._threads) >= RUNNING_MAX or not self.hold(record.id):
                continue
            thread = threading.Thread(target=self._run_held, args=(record.id,), name=f"seachange-job-{record.id}")
            thread.daemon = True
            try:
                start_thread(thread)
            except MemoryError:
                # In a later round.
                self.let_go(record.id)
                break
            self._threads.append(thread)
            begun.append(thread)
        return begun

    def find_orphans(self) -> list[JobRecord]:
        unfinished = self._parts.catalog.jobs(unfinished=True)
        if not unfinished:
            return []
        # A killed process owns its jobs until its epoch is ended.
        end_dead_nodes(self._parts.catalog)
        live = {node.epoch for node in self._parts.catalog.nodes() if node.live}
        own = self._epoch.live().epoch
        with self._lock:
            held = set(self._held)
        open_ids = {record.id for record in unfinished}
        return [
            record
            for record in unfinished
            if record.id not in held
            and (self.takes_up or record.epoch == own)
            and self._can_run(record)
            and (_is_asked_for(record) or (is_wanted(record) and (record.epoch == own or record.epoch not in live)))
            and is_due(record, open_ids)
        ]

    def _can_run(self, record: JobRecord) -> bool:
        """A job is finished by the rules that it was planned with. A program that lacks them, or cannot read the
        record, leaves the job to other nodes and logs that once."""
        problem: errors.Error
        try:
            job = read_job(record)
            if self._knows(job):
                return True
            problem = errors.UnknownRelease(release=job.change.release)
        except errors.UnreadableJob as unreadable:
            problem = unreadable
        if record.id not in self._left:
            self._left.add(record.id)
            self._note(record.id, problem)
        return False

    def _knows(self, job: Job) -> bool:
        return job.change.release in RELEASES and job.change.release <= self._parts.release

    def _run_held(self, job_id: JobId) -> None:
        interrupts = SessionInterrupts()
        is_over = False
        try:
            if self._is_left(job_id):
                self.revert(job_id)
            elif self._has_begun(job_id, interrupts):
                conditions = Conditions(partial(self._pause, interrupts), interrupts, self._update)
                is_over = self.run(job_id, conditions).is_finished
        except (Lost, Stopped):
            # Another runner continues.
            return
        except errors.Error as problem:
            self._note(job_id, problem)
        except Exception as problem:  # noqa: BLE001 - the outer edge of a thread
            self._note(job_id, self._bug(problem, job_id))
        finally:
            with self._lock:
                self._held.discard(job_id)
        if is_over:
            # A job that was queued behind it may be next.
            self.wake()

    def _revert_cancelled(self) -> None:
        """Reverts cancelled jobs of open transaction blocks of this node that no statement runs: a block may be idle
        for long."""
        with self._lock:
            idle = self._held - self._running.keys()
        for record in self._parts.catalog.jobs(unfinished=True):
            if record.id in idle and record.request is JobRequest.CANCEL and read_job(record).owner is not None:
                with suppress(Lost):
                    self.revert(record.id)

    def _is_left(self, job_id: JobId) -> bool:
        """Whether it is the job of a transaction block. It is held as long as the block is open: it was left behind."""
        record = self._parts.catalog.job(job_id)
        return record is not None and read_job(record).owner is not None

    def _has_begun(self, job_id: JobId, interrupts: SessionInterrupts) -> bool:
        """Begins a queued job if its turn has come; returns whether the job can be run."""
        record = self._parts.catalog.job(job_id)
        if record is None or record.status in FINISHED or read_job(record).queued is None:
            return record is not None
        if self.begin is None:
            return False
        begin = partial(self._begin, self.begin, interrupts)
        return advance(record, NodeChanges(self._parts, self._epoch.live()), begin)

    def _begin(self, begin: BeginQueued, interrupts: SessionInterrupts, job: Job) -> Collection[JobId]:
        with self._reachable(job.id, interrupts):
            try:
                return begin(job, interrupts)
            except errors.QueryCanceled as problem:
                if interrupts.was_nudged():
                    # The job is to be paused or cancelled, or the node closes; nothing has begun.
                    raise Stopped from problem
                raise

    def _note(self, job_id: JobId, problem: errors.Error) -> None:
        text = f"will be retried later: {problem.sqlstate}: {problem}"
        # A problem that recurs in every round is logged once.
        if self._noted.get(job_id) == text:
            return
        with suppress(errors.Error):
            self._parts.catalog.log_event(text, job_id)
            self._noted[job_id] = text

    def _bug(self, problem: Exception, job_id: JobId = NO_JOB) -> errors.Error:
        log_internal(self._parts.log, self._parts.entropy, problem, "the jobs of the node", job=job_id or None)
        return errors.Bug(detail=f"{type(problem).__name__}: {problem}")

    def _update(self, job: Job) -> None:
        self.on_update(job)
        if self._stop.is_set():
            raise Stopped

    def _pause(self, interrupts: SessionInterrupts, seconds: float) -> None:
        if self._stop.is_set():
            raise Stopped
        interrupts.pause(seconds)


def is_wanted(record: JobRecord) -> bool:
    """Whether an orphaned job should be run."""
    return record.status not in RESTING


def _count_rows(on_update: Callable[[Job], None], rows: CounterByName, last: list[int], job: Job) -> None:
    """Counts the rows read since the last call. Repeated work counts again; the counter never decreases."""
    rows.add(count=max(job.rows_read - last[0], 0))
    last[0] = job.rows_read
    on_update(job)


def _is_to_stop(record: JobRecord) -> bool:
    return record.status in (JobStatus.RUNNING, JobStatus.PENDING) and record.request in (
        JobRequest.PAUSE,
        JobRequest.CANCEL,
    )


def _is_asked_for(record: JobRecord) -> bool:
    """A resting job has no owner: the first node that sees the request takes it. The same holds for a pending one."""
    if record.status is JobStatus.PENDING:
        return record.request in (JobRequest.PAUSE, JobRequest.CANCEL)
    wakes = JobRequest.RESUME if record.status is JobStatus.PAUSED else JobRequest.PUBLISH
    return record.status in RESTING and record.request in (wakes, JobRequest.CANCEL)
