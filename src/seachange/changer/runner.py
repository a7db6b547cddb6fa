"""The job runner: takes a job from its recorded state to its end, one commit at a time.

**Invariant:** every step ends in one commit that carries the job's next record, compared with the one that was read. A
runner that was overtaken, or whose node's epoch has ended, cannot publish anything.

**Invariant:** a cancel raises the revision of the record. So either it comes before the publication, which is then
refused, or it finds the publication on record, and is refused itself.

**Invariant:** nothing that can fail because of the data comes after the publication; a failure before it is reverted by
the reversed plan.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace

from seachange import errors
from seachange.changer.drain import Drain, describe, describe_wait, show_moment
from seachange.changer.job import (
    DRAIN,
    THIS_COMMIT,
    Job,
    JobFailure,
    StageDone,
    as_of,
    canceled,
    history_record,
    job_change,
    read_job,
    written,
)
from seachange.changer.job_log import SPACE, JobLog, Paused
from seachange.changer.maintenance import Maintenance
from seachange.changer.ports import Changes, Holder, Lost, Pipeline, Restorer, Stopped, Unconverted
from seachange.changer.retry_policy import Reaction, backoff_s, reaction_to
from seachange.model.change import elements
from seachange.model.change.elements import descriptor_of
from seachange.model.change.ops import BackfillIndexes, Op, OpType, RestoreColumns, SetState, Validate
from seachange.model.change.work import Built, UnitDone
from seachange.model.ids import Seq, TableId
from seachange.model.jobs import RESTING, JobRequest, JobStatus
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Phase, Progress, Stage
from seachange.runtime.clock import Clock
from seachange.runtime.faults import reach

# How often a job that waits for disk space checks it.
SPACE_S = 1.0
# How often rows are checked again after a row without a value of the new type may have been written.
CHECKS_MAX = 20


class JobRunner:
    """`on_update` is called with every new state of the job; `pause` waits, or raises if the work is to end. A pause or
    cancel request interrupts it in the same way: `was_nudged` tells the two apart."""

    def __init__(
        self,
        changes: Changes,
        pipeline: Pipeline,
        restorer: Restorer,
        drain: Drain,
        clock: Clock,
        pause: Callable[[float], None],
        on_update: Callable[[Job], None] = lambda job: None,
        was_nudged: Callable[[], bool] = lambda: False,
    ) -> None:
        self._changes = changes
        self._pipeline = pipeline
        self._restorer = restorer
        self._drain = drain
        self._clock = clock
        self._pause = pause
        self._on_update = on_update
        self._was_nudged = was_nudged
        self._log = JobLog(changes, pipeline, clock, pause, on_update)
        self._maintenance = Maintenance(changes, pipeline, clock, self._log, self._rest_before)
        # The number of consecutive failures to record something.
        self._unwritten = 0

    def run(self, job: Job) -> Job:
        """Runs the job to its end, or to a rest. Raises `Lost` if another runner has taken it over."""
        while not job.is_finished and job.status not in RESTING:
            before = job.revision
            job = self.step(job)
            if job.revision > before:
                self._unwritten = 0
            self._on_update(job)
        return job

    def run_to_publication(self, job: Job) -> Job:
        """Runs the job of a transaction block: what comes before the publication, which is a part of the block's
        COMMIT. A job that fails is reverted to its end."""
        while not job.is_finished and not job.is_publishable:
            job = self.step(job)
            self._on_update(job)
        return job

    def take(self, job: Job) -> Job:
        """Makes this node the owner of the job. A paused job continues, or is reverted."""
        status = JobStatus.RUNNING if job.status in (*RESTING, JobStatus.PENDING) else job.status
        event = "resumed" if job.status is JobStatus.PAUSED else "taken over"
        job = self._log.record(replace(job, status=status, waiting=""), event)
        reach("job.taken")
        return job

    def step(self, job: Job) -> Job:
        """To the next commit, or to the next look at what cannot be done yet."""
        try:
            return self._step_or_react(job)
        except errors.QueryCanceled:
            # The statement that runs the job is cancelled, not the job.
            raise
        except errors.Error:
            # Neither the result of the step nor the reaction to its error could be recorded.
            return self._reread_record(job)

    def _step_or_react(self, job: Job) -> Job:
        try:
            # Raises on an interrupt.
            self._pause(0)
            self._log.check_cancelled(job)
            return self._advance(job)
        except Paused:
            return self._log.record(replace(self._log.reread(job), status=JobStatus.PAUSED, waiting=""), "paused")
        except Lost as lost:
            return self._revert_canceled(job, lost)
        except errors.StaleNode as problem:
            raise Lost(str(problem)) from problem
        except (errors.CatalogUnavailable, errors.UnknownCommitOutcome):
            raise
        except errors.Error as problem:
            job = self._log.reread(job)
            if isinstance(problem, errors.QueryCanceled) and self._was_nudged():
                # The next step handles the request.
                return job
            return self._react(job, problem)
        except Stopped:
            raise
        except MemoryError:
            # Beside a statement that uses too much.
            return self._react(self._log.reread(job), errors.OutOfMemory(detail="the process cannot allocate more"))
        except Exception as problem:  # noqa: BLE001 - the outer edge of a job
            # A bug. The change is reverted, and the job log keeps the traceback.
            bug = errors.Bug(detail=f"{type(problem).__name__}: {problem}")
            return self._react(self._log.reread(job), bug, traceback.format_exc())

    def _reread_record(self, job: Job) -> Job:
        """The catalog is not available: once it is, its record shows whether the last step was committed."""
        while True:
            self._unwritten += 1
            self._rest(backoff_s(self._unwritten))
            try:
                return self._log.reread(job)
            except errors.CatalogUnavailable:
                continue

    def _revert_canceled(self, job: Job, lost: Lost) -> Job:
        """A commit was refused: because of a cancel, or because another node has the job."""
        record = self._changes.read(job.id)
        if record is None or not self._changes.is_ours(record) or record.request is not JobRequest.CANCEL:
            raise lost
        job = read_job(record)
        if not job.can_be_canceled:
            raise lost
        return self.start_revert(job, canceled(job))

    def _react(self, job: Job, problem: errors.Error, trace: str = "") -> Job:
        """Reacts to an error. A change that can no longer be reverted, or is being reverted, is retried until it
        succeeds."""
        attempts = job.errors_met + 1
        reaction = reaction_to(problem, attempts)
        if reaction is Reaction.REVERT and job.can_be_canceled:
            return self.start_revert(job, JobFailure(problem.sqlstate, str(problem), problem.hint), trace)
        if reaction is Reaction.WAIT:
            return self._wait(job, problem)
        job = replace(job, errors_met=attempts)
        if reaction is Reaction.RESTART:
            unfenced = job.progress.unfenced | set(job.descriptors)
            job = replace(job.restarted(), at=None, progress=replace(job.progress, unfenced=unfenced))
        rest_s = backoff_s(attempts)
        after = f"after an error: {problem.sqlstate}: {problem}"
        waiting = f"attempt {attempts + 1}, until {show_moment(self._clock.wall_us() + int(1e6 * rest_s))}, {after}"
        job = self._log.record(replace(job, waiting=waiting), f"retries {after}\n{trace}".rstrip())
        # The end of the pause is recorded with the next step.
        return replace(self._rest_before(job, rest_s), waiting="")

    def _wait(self, job: Job, problem: errors.Error) -> Job:
        """Waits for disk space. It is recorded once, since a record needs space itself."""
        if not job.waiting.startswith(SPACE):
            waiting = f"{SPACE}: {problem}"
            job = self._log.record(replace(job, waiting=waiting), f"waits for {waiting}")
        return self._rest_before(job, SPACE_S)

    def _rest_before(self, job: Job, seconds: float) -> Job:
        """Pauses before the job is tried again."""
        try:
            self._rest(seconds)
        except errors.QueryCanceled:
            # The next step sees the interrupt too, and reverts the change. A change that cannot be reverted is left to
            # other nodes.
            if not job.can_be_canceled:
                raise
        return job

    def _rest(self, seconds: float) -> None:
        """Pauses until the time is over or a request arrives."""
        try:
            self._pause(seconds)
        except errors.QueryCanceled:
            if not self._was_nudged():
                raise

    def start_revert(self, job: Job, failure: JobFailure, trace: str = "") -> Job:
        """From here on the change is reverted."""
        # Its rows are not read again.
        stopped = replace(job.restarted(), rows_total=job.rows_total)
        turned = replace(stopped, status=JobStatus.REVERTING, failure=failure, waiting="", errors_met=0)
        event = f"reverts: {failure.sqlstate}: {failure.message}\n{trace}".rstrip()
        job = self._log.record(turned, event)
        reach("job.reverting")
        return job

    # Stages.

    def _advance(self, job: Job) -> Job:
        if job.upkeep is not None:
            done = job.upkeep.is_collected or job.is_reverting
            return self._finish(job) if done else self._maintenance.step(job, job.upkeep)
        plan = job.rest()
        # What is left is garbage: the collector removes it once no snapshot can read it.
        if all(stage.type is OpType.COLLECTION for stage in plan.stages):
            return self._revert_first_change(job) if job.is_reverting and job.undo is not None else self._finish(job)
        stage = plan.stages[0]
        if stage.raises and stage.type is not OpType.COLLECTION:
            return self._raise(job, plan, stage)
        if self._is_held_back(job, stage):
            return self._log.record(replace(job, status=JobStatus.READY, waiting=""), "is ready to be published")
        began_us = self._clock.wall_us()
        match stage.type:
            case OpType.MUTATION:
                return self._mutate(job, plan, stage, began_us)
            case OpType.BACKFILL:
                return self._backfill(job, plan, stage, began_us)
            case OpType.RESTORATION:
                return self._restore(job, plan, stage, began_us)
            case OpType.VALIDATION:
                return self._validate(job, plan, stage, began_us)
            case OpType.COLLECTION:
                return self._log.record(self._after(job, plan, stage, began_us))

    def _is_held_back(self, job: Job, stage: Stage) -> bool:
        """Whether the publication waits for PUBLISH JOB."""
        is_next = stage.is_publication and not job.is_reverting
        return is_next and job.is_postponed and self._log.reread_request(job) is not JobRequest.PUBLISH

    def _raise(self, job: Job, plan: ChangePlan, stage: Stage) -> Job:
        """Waits for a limited time until no transaction with an older version can commit, then raises the minimum
        version."""
        began_us = self._clock.wall_us()
        current = job

        def on_holders(holders: tuple[Holder, ...], left_ms: int) -> None:
            nonlocal current
            self._log.check_cancelled(current)
            waiting = describe_wait(holders, self._clock.wall_us() + 1_000 * left_ms)
            current = self._log.record(replace(current, waiting=waiting), f"waits for {waiting}")
            self._on_update(current)

        # Later commits that are only job records do not count: idle nodes publish their marks when they see a new
        # version.
        late = self._drain.wait(min(job.seen, self._changes.published(stage.raises)), stage.raises, on_holders)
        reach("job.drained")
        rest = replace(job.progress, unfenced=job.progress.unfenced - set(stage.raises))
        raised = replace(
            current.restarted(),
            progress=rest,
            waiting="",
            at=THIS_COMMIT,
            rows_total=job.rows_total or self._measure(job, plan),
            since_us=self._clock.wall_us(),
            errors_met=0,
            stages=(*job.stages, StageDone(stage.phase, DRAIN, began_us, self._clock.wall_us() - began_us)),
        )
        event = f"no longer waits for {describe(late)}" if late else "every writer knows the newest version"
        seq = self._changes.raise_versions(stage.raises, job_change(raised, event))
        reach("job.raised")
        return written(raised, seq)

    def _mutate(self, job: Job, plan: ChangePlan, stage: Stage, began_us: int) -> Job:
        mutations = [op for op in plan.ops(stage) if isinstance(op, SetState)]
        published = stage.is_publication and not job.is_reverting
        fenced = job.change.fenced if published else frozenset()
        after = self._after(job, plan, stage, began_us)
        begins_second_phase = published and job.sequel is not None
        after = after.second_phase() if begins_second_phase else replace(after, passed=job.passed or published)
        history = history_record(after) if published and not begins_second_phase else None
        what = "published" if stage.is_publication else "advanced"
        record = job_change(after, f"{what}: {len(mutations)} elements")
        try:
            seq = self._changes.publish(mutations, fenced, record, job.converted_at, history)
        except Unconverted:
            return self._check_again(job, mutations)
        reach("job.published")
        return written(after, seq)

    def _check_again(self, job: Job, mutations: Sequence[SetState]) -> Job:
        """A row that could not be converted has been written since the conversion. It may be gone already."""
        if job.errors_met >= CHECKS_MAX:
            raise errors.DataError(detail="rows without a value of the new type keep being written")
        at = self._changes.head()
        changed = [m.element for m in mutations]
        columns = [e for e in changed if isinstance(e, elements.AnyColumn)]
        for table_id in dict.fromkeys(column.table_id for column in columns):
            self._pipeline.check_converted(table_id, at)
        checked = replace(job, converted_at=at, errors_met=job.errors_met + 1)
        return self._log.record(checked, f"all rows have values of the new type as of {at}")

    def _backfill(self, job: Job, plan: ChangePlan, stage: Stage, began_us: int) -> Job:
        at = as_of(job)
        built: list[Built] = []
        current = job
        for number, op in enumerate(plan.ops(stage)):
            assert isinstance(op, BackfillIndexes)

            def keep(unit: UnitDone, number: int = number) -> None:
                nonlocal current
                current = self._log.keep(current, number, unit)

            def on_progress(rows: int) -> None:
                nonlocal current
                current = self._log.on_progress(current, rows)

            done = [unit for of, unit in current.units if of == number]
            built += self._pipeline.backfill(op, at, done, keep, on_progress)
        reach("job.built")
        read = sum(unit.rows for _, unit in current.units)
        written_bytes = sum(member.segment.size_bytes for one in built for member in one.members)
        current = replace(current, built_bytes=current.built_bytes + written_bytes)
        after = self._after(replace(current, units=()), plan, stage, began_us, read)
        if any(isinstance(plan.graph.targets[t.target].element, elements.PrimaryIndex) for t in stage.transitions):
            # Every row was converted for it.
            after = replace(after, converted_at=at)
        seq = self._changes.attach(built, at, job_change(after, f"built {len(built)} indexes as of {at}"))
        reach("job.attached")
        return written(after, seq)

    def _restore(self, job: Job, plan: ChangePlan, stage: Stage, began_us: int) -> Job:
        # Rows that have their values already are not written again.
        current = job.restarted()

        def on_progress(rows: int) -> None:
            nonlocal current
            current = self._log.on_progress(current, current.rows_done + rows)

        done = sum(self._restorer.restore(op, on_progress) for op in plan.ops(stage) if isinstance(op, RestoreColumns))
        reach("restore.done")
        return self._log.record(self._after(current, plan, stage, began_us, done), f"restored values of {done} rows")

    def _validate(self, job: Job, plan: ChangePlan, stage: Stage, began_us: int) -> Job:
        # Rows that an earlier attempt has read are read again.
        current, unwritten = job.restarted(), 0

        def report(rows: int) -> None:
            nonlocal current, unwritten
            unwritten += rows
            if self._log.poll_requests(current):
                current = self._log.record_progress(current, replace(current, rows_done=current.rows_done + unwritten))
                unwritten = 0

        for op in plan.ops(stage):
            assert isinstance(op, Validate)
            self._complete(job, op)
            violation = self._pipeline.validate(op, as_of(job), report)
            if violation is not None:
                detail = f": {violation.detail}" if violation.detail else ""
                raise errors.remembered(violation.sqlstate, violation.message + detail)
        reach("job.validated")
        if current.owner is not None:
            current = replace(current, validated_at=min(current.validated_at or as_of(job), as_of(job)))
        return self._log.record(self._after(current, plan, stage, began_us, current.rows_done + unwritten), "validated")

    def _complete(self, job: Job, op: Validate) -> None:
        """Rows that others have inserted since a column has got its values back, before they knew that it must not be
        NULL, get theirs."""
        columns = (t.element for t in job.change.targets if isinstance(t.element, elements.RestoredColumn))
        for column in columns:
            if isinstance(op.element, elements.ColumnNotNull) and op.element.column_id == column.column_id:
                again = RestoreColumns(column.table_id, (column.column_id,), Seq(column.as_of))
                self._restorer.restore(again, lambda rows: None)

    def _revert_first_change(self, job: Job) -> Job:
        """The second of two changes has been reverted: now the first, which is public already, is reverted too."""
        job = self._log.record(job.first_phase(), "reverts the preceding change too")
        reach("job.reverting")
        return job

    def _finish(self, job: Job) -> Job:
        status = JobStatus.SUCCEEDED
        if job.failure is not None:
            status = JobStatus.CANCELED if job.failure.sqlstate == errors.QueryCanceled.sqlstate else JobStatus.FAILED
        job = self._log.record(replace(job, status=status, waiting="", units=()), status.value)
        reach("job.finished")
        return job

    def _after(self, job: Job, plan: ChangePlan, stage: Stage, began_us: int, rows: int = 0) -> Job:
        statuses = list(job.progress.statuses)
        for transition in stage.transitions:
            statuses[transition.target] = transition.status
        unfenced = job.progress.unfenced | set(stage.publishes)
        following = plan.stages[1].phase if len(plan.stages) > 1 else Phase.NON_REVERTIBLE
        done = self._log.stage_done(job, stage.phase, str(stage.type), began_us, rows)
        return replace(done, progress=Progress(tuple(statuses), unfenced), phase=following)

    def _measure(self, job: Job, plan: ChangePlan) -> int:
        """An estimate of how many rows the remaining work reads."""
        head = self._changes.head()
        plans = [plan, *([job.second_phase().rest()] if job.sequel is not None else [])]
        ops = [op for part in plans for stage in part.stages for op in part.ops(stage)]
        return sum(self._pipeline.rows(table_id, head) for table_id in filter(None, map(_table_read, ops)))


def _table_read(op: Op) -> TableId | None:
    match op:
        case BackfillIndexes() | RestoreColumns():
            return op.table_id
        case Validate():
            return TableId(descriptor_of(op.element))
        case _:
            return None
