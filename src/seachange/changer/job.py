"""A job: the progress of a change, as a value that any node can store, read and resume.

**Invariant:** everything that a job has done is in its record, written by the same commit that did it. A node that
takes the job over plans the rest from the record alone and continues.

**Invariant:** a file written by a finished unit belongs to the job, not to the epoch that wrote it. A file that the job
neither keeps nor attaches becomes garbage by the same commit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from seachange import errors
from seachange.model.change.elements import AnyObject, descriptor_of
from seachange.model.change.ops import OpType
from seachange.model.change.targets import GOAL_STATUS
from seachange.model.change.vacuum import VacuumWork
from seachange.model.change.work import UnitDone
from seachange.model.change_history import ChangedObject, ChangeRecord, ChangeWork, PlannedChange
from seachange.model.codecs.codec import Codec
from seachange.model.ids import DescriptorId, SegmentId, Seq
from seachange.model.jobs import FINISHED, JobChange, JobId, JobRecord, JobStatus
from seachange.planner.plan import Change, ChangePlan, Sequel, plan_remainder, plan_revert
from seachange.planner.stages import Phase, Progress, unfenced_at_first

# Stands for the sequence of the commit that writes the record, which is not known before.
THIS_COMMIT = Seq(-1)
_US = 1_000_000
# The setting of a job that waits for PUBLISH JOB.
POSTPONED = ("seachange.publish", "manual")
# The name of the stage that waits for writers.
DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class JobFailure:
    """Why a job was reverted: the error of its statement."""

    sqlstate: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class StageDone:
    """A finished step: what it did, when it began, how long it took, and how many rows it read."""

    phase: Phase
    what: str
    began_us: int
    took_us: int
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Queued:
    """A queued statement: it is planned when its turn comes, with the rights and settings of its sender. `descriptors`
    are the objects that it changes, as far as known; `behind` are the jobs that must all have succeeded."""

    user: str
    database: str
    settings: tuple[tuple[str, str], ...]
    descriptors: tuple[DescriptorId, ...]
    behind: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class BlockOwner:
    """The open transaction block that a job belongs to, by its session."""

    session: str


@dataclass(frozen=True, slots=True)
class Job:
    """`at` is the raise as of which backfills and validations read; `units` are the finished units of the current
    stage, each with the number of its op. `rows_total` is what all its work reads, `rows_before` what finished stages
    have read, and `rows_done` what the current one has read. `passed`: something irrevocable was published.
    `converted_at`: as of it all rows are known to have values for converted columns. `seen` is the commit that wrote
    the record; `errors_met` counts failed attempts since the last step. A `queued` job has no change yet."""

    id: JobId
    statement: str
    change: Change
    progress: Progress
    phase: Phase
    passed: bool = False
    status: JobStatus = JobStatus.RUNNING
    at: Seq | None = None
    rows_total: int = 0
    rows_before: int = 0
    rows_done: int = 0
    failure: JobFailure | None = None
    # What the job waits for, in words.
    waiting: str = ""
    stages: tuple[StageDone, ...] = ()
    units: tuple[tuple[int, UnitDone], ...] = ()
    converted_at: Seq | None = None
    errors_met: int = 0
    queued: Queued | None = None
    # The second phase, which begins with the publication of the change; and once it has begun, the change that reverts
    # the first phase.
    sequel: Sequel | None = None
    undo: Change | None = None
    # The commit before its first change was published, if there are two.
    begun_after: Seq | None = None
    # The highest progress reported so far: work that is repeated does not lower it.
    best: float = 0.0
    # When its current work began.
    since_us: int = 0
    # The drain timeout of the job; None: the default of the node that runs it.
    drain_ms: int | None = None
    # The settings of its session that affect its work, on whatever node it runs.
    settings: tuple[tuple[str, str], ...] = ()
    # Set for VACUUM jobs, which do not change the schema.
    upkeep: VacuumWork | None = None
    # Set for the states that a transaction block publishes. Its COMMIT ends the job; without its owner the job is
    # reverted, never continued.
    owner: BlockOwner | None = None
    # For the history of changes: what its statement has planned, and the size of what it has built.
    planned: PlannedChange | None = None
    built_bytes: int = 0
    # Of the validations of a transaction block, the oldest sequence that one of them has read at.
    validated_at: Seq | None = None
    revision: int = 0
    seen: Seq = Seq(0)  # noqa: RUF009 - a number

    @property
    def is_reverting(self) -> bool:
        return self.status is JobStatus.REVERTING

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    @property
    def is_postponed(self) -> bool:
        """Whether it publishes nothing before it is asked to."""
        return POSTPONED in self.settings and self.owner is None and self.upkeep is None

    @property
    def can_be_canceled(self) -> bool:
        return not (self.passed or self.is_reverting or self.is_finished)

    @property
    def descriptors(self) -> tuple[DescriptorId, ...]:
        if self.queued is not None:
            return self.queued.descriptors
        undo = self.sequel.undo if self.sequel is not None else self.undo
        all_ = [self.change, self.sequel.change if self.sequel is not None else None, undo]
        return tuple(
            sorted({descriptor_of(t.element) for change in all_ if change is not None for t in change.targets})
        )

    @property
    def files(self) -> tuple[SegmentId, ...]:
        return tuple(file for _, unit in self.units for file in unit.files)

    @property
    def fraction_done(self) -> float:
        """The fraction of the work that is done. It never decreases."""
        if self.status is JobStatus.SUCCEEDED:
            return 1.0
        if not self.rows_total:
            return self.best
        return max(self.best, min(0.99, self.rows_read / self.rows_total))

    @property
    def rows_read(self) -> int:
        return self.rows_before + self.rows_done

    def rate(self, now_us: int) -> float | None:
        """Rows per second, of the current work or, before its first rows, of the last."""
        if self.rows_done and now_us > self.since_us:
            return self.rows_done * _US / (now_us - self.since_us)
        last = next((stage for stage in reversed(self.stages) if stage.rows and stage.took_us), None)
        return last.rows * _US / last.took_us if last is not None else None

    def restarted(self) -> Job:
        """Discards the progress of the current stage: its rows are read again, but reported progress does not
        decrease."""
        return replace(
            self,
            best=self.fraction_done,
            rows_before=self.rows_read,
            rows_total=self.rows_total + self.rows_done if self.rows_total else 0,
            rows_done=0,
            units=(),
        )

    def second_phase(self) -> Job:
        """Begins the second phase. Until its change is published, both can be reverted."""
        if self.sequel is None:
            raise errors.Bug(detail=f"job {self.id} has no second change")
        change = self.sequel.change
        unfenced = self.progress.unfenced | unfenced_at_first(change.targets)
        return replace(
            self,
            change=change,
            progress=Progress(tuple(target.start for target in change.targets), unfenced),
            phase=Phase.STATEMENT if change.in_block else Phase.POST_COMMIT,
            passed=False,
            at=None,
            converted_at=None,
            sequel=None,
            undo=self.sequel.undo,
            begun_after=self.seen,
        )

    def first_phase(self) -> Job:
        """Returns to the first change, after the second was reverted."""
        if self.undo is None:
            raise errors.Bug(detail=f"job {self.id} has no change before this one")
        there = tuple(GOAL_STATUS[target.goal] for target in self.undo.targets)
        return replace(self, change=self.undo, progress=Progress(there, self.progress.unfenced), undo=None)

    def rest(self) -> ChangePlan:
        if self.is_reverting:
            return plan_revert(self.change, self.progress)
        return plan_remainder(self.change, self.progress, self.phase)

    @property
    def is_publishable(self) -> bool:
        """Whether nothing is left to do before the publication."""
        if self.is_reverting or self.is_finished or self.queued is not None or self.upkeep is not None:
            return False
        if self.sequel is not None:
            # The publication of the first phase shows nothing.
            return False
        following = next(iter(self.rest().stages), None)
        return following is not None and following.is_publication and not following.raises

    @property
    def stage(self) -> str:
        """The next step, in a word."""
        if self.queued is not None:
            return "" if self.is_finished else "queue"
        if self.upkeep is not None:
            return "" if self.is_finished else self.upkeep.stage
        stages = () if self.is_finished else self.rest().stages
        if not stages:
            return ""
        if self.owner is not None and self.is_publishable:
            return "commit"
        if stages[0].raises and stages[0].type is not OpType.COLLECTION:
            return DRAIN
        return str(stages[0].type)


JOB_CODEC = Codec(Job)


def work_done(job: Job) -> ChangeWork:
    drains = [stage for stage in job.stages if stage.what == DRAIN]
    return ChangeWork(
        rows=job.rows_read,
        written_bytes=job.built_bytes,
        drains=len(drains),
        drained_us=sum(stage.took_us for stage in drains),
    )


def history_record(job: Job) -> ChangeRecord | None:
    """What the history says of the change that the job publishes, with the objects that it has created before; None if
    the job comes from a release without a history."""
    if job.planned is None:
        return None
    first = job.undo.targets if job.undo is not None else ()
    wholes = (t.element for t in (*first, *job.change.targets) if t.adds and isinstance(t.element, AnyObject))
    created = tuple(ChangedObject(descriptor_of(element), "", 0, 0) for element in wholes)
    return ChangeRecord((job.planned,), created, (job.id,), work_done(job), job.undo is not None, job.begun_after or 0)


def canceled(job: Job) -> JobFailure:
    """The failure of a job that was cancelled by a user."""
    problem = errors.QueryCanceled(reason=f"CANCEL JOB {job.id}")
    return JobFailure(problem.sqlstate, str(problem), problem.hint)


def rolled_back(job: Job) -> JobFailure:
    """The failure of a job whose transaction block was rolled back, or has gone with its process."""
    whose = f" of {job.owner.session}" if job.owner is not None else ""
    problem = errors.QueryCanceled(reason=f"the rollback of its transaction block{whose}")
    return JobFailure(problem.sqlstate, str(problem), problem.hint)


def queue_job(job_id: JobId, statement: str, queued: Queued, waiting: str) -> Job:
    return replace(
        _no_change(job_id, statement, Phase.STATEMENT), status=JobStatus.PENDING, waiting=waiting, queued=queued
    )


def vacuum_job(job_id: JobId, statement: str, upkeep: VacuumWork, settings: tuple[tuple[str, str], ...]) -> Job:
    """It holds no descriptor: schema changes of the table and the job do not wait for each other."""
    return replace(_no_change(job_id, statement, Phase.POST_COMMIT), upkeep=upkeep, settings=settings)


def _no_change(job_id: JobId, statement: str, phase: Phase) -> Job:
    return Job(job_id, statement, Change((), {}, {}), Progress((), frozenset()), phase)


def job_change(job: Job, event: str = "") -> JobChange:
    """The record of the job from this commit on."""
    held = () if job.is_finished else job.descriptors
    body = JOB_CODEC.encode(replace(job, revision=0, seen=Seq(0)))
    return JobChange(job.id, job.revision, job.status, held, body, job.files, event)


def written(job: Job, seq: Seq) -> Job:
    """The job after the commit with its record was accepted."""
    at = seq if job.at == THIS_COMMIT else job.at
    return replace(job, revision=job.revision + 1, seen=seq, at=at)


def read_job(record: JobRecord) -> Job:
    try:
        job = JOB_CODEC.decode(record.body)
    except (KeyError, TypeError, ValueError) as problem:
        raise errors.UnreadableJob(job=record.id, detail=f"{type(problem).__name__}: {problem}") from problem
    if not isinstance(job, Job):
        raise errors.UnreadableJob(job=record.id, detail=f"it is a {type(job).__name__}")
    at = record.updated_seq if job.at == THIS_COMMIT else job.at
    return replace(job, revision=record.revision, seen=record.updated_seq, at=at)


def as_of(job: Job) -> Seq:
    """The sequence as of which its work reads rows."""
    if job.at is None:
        raise errors.Bug(detail=f"job {job.id} reads rows before any raise")
    return job.at
