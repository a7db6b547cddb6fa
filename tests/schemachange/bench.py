"""Runs a case: the statement, its job step by step, writers at every moment, and what interrupts it.

A *moment* is when a step of the job has been committed and the next has not begun; moment 0 is before the statement,
moment 1 after its commit. Steps are numbered by the moment that they begin at.
"""

import re
import threading
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from enum import StrEnum

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId, JobRecord, JobRequest, JobStatus
from seachange.model.schema.descriptor import Table
from seachange.runtime.faults import FAULTS, POINTS
from tests.schemachange.case import Case
from tests.schemachange.traffic import Traffic
from tests.schemachange.world import open_quiet
from tests.support.nodes import Place

# Where a process that makes a step may die. Before these nothing has happened that is not tried by the one before.
CRASHES = tuple(
    point
    for point in POINTS
    if point.split(".")[0] in ("commit", "segment", "job") and point not in ("commit.queued", "commit.locked")
)


class Crash(BaseException):
    """The process that runs the job is no more."""


def _die() -> None:
    raise Crash


class How(StrEnum):
    CANCEL = "cancelled"
    PAUSE = "paused"
    CRASH = "crashed"
    SPOIL = "spoiled"


@dataclass(frozen=True, slots=True)
class Interruption:
    """At `moment`: a request, or the commit of a row that stands against the change. A crash is where a point is first
    passed from then on."""

    how: How
    moment: int
    point: str = ""

    def __str__(self) -> str:
        return f"{self.how} at {self.moment}{f' {self.point}' if self.point else ''}"


@dataclass(slots=True)
class Outcome:
    """`moments` the last one before the end, at each of which the job could be canceled or not."""

    before: dict[str, Table]
    relations: set[str]
    record: JobRecord | None = None
    # The points that were passed by the step from each moment.
    points: dict[int, list[str]] = field(default_factory=dict)
    revertible: set[int] = field(default_factory=set)
    interrupted: bool = False
    spoiled: str = ""
    moments: int = 0


def asynchronous(statement: str) -> str | None:
    """The statement as one that leaves its job to others, if it has such a form."""
    text, count = re.subn(r"^(create (?:unique )?index|drop index|alter table)\b", r"\1 concurrently", statement)
    return text if count else None


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


class Bench:
    """Used as a context. `judge_nodes` are the nodes that are left when the run is over."""

    def __init__(
        self, place: Place, case: Case, interruption: Interruption | None = None, dense: bool = False, crowd: int = 1
    ) -> None:
        self.place = place
        self.case = case
        self._interruption = interruption
        self._stack = ExitStack()
        self._nodes = [self._stack.enter_context(closing(open_quiet(place, name))) for name in ("one", "two")]
        self.runner = open_quiet(place, "runner")
        self.outcome = Outcome(self.tables(), self.relations())
        self.table_id = self.outcome.before["t"].id
        self._objects = dict(self.runner.epoch.schemas.newest.objects)
        self.traffic = Traffic(self._nodes, case, self.table_id, dense, crowd)
        self._spoiler: Session | None = None
        self._twinned = False
        self._where: object = None
        self._counted = FAULTS.counts()

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        FAULTS.disarm()
        self.runner.close()
        for flight in self.traffic.flights:
            flight.session.close()
        if self._spoiler is not None:
            self._spoiler.close()
        self._stack.close()

    @property
    def nodes(self) -> list[Node]:
        return [*self._nodes, self.runner]

    def tables(self) -> dict[str, Table]:
        self.runner.epoch.catch_up()
        return {table.name: table for table in self.runner.epoch.schemas.newest.by_id.values()}

    def table(self) -> Table | None:
        """The one that is changed, whatever it is called by now."""
        self.runner.epoch.catch_up()
        return self.runner.epoch.schemas.newest.by_id.get(self.table_id)

    def relations(self) -> set[str]:
        self.runner.epoch.catch_up()
        return {name for _, name in self.runner.epoch.schemas.newest.within().relations}

    # The run.

    def run(self) -> Outcome:
        self._pass_moment()
        job_id = self._launch()
        while job_id is not None:
            try:
                job = self._go_on(job_id)
            except Crash:
                self._succeed()
                continue
            if job.status is JobStatus.PAUSED:
                self._pass_moment()
                assert self.runner.parts.catalog.request_job(job_id, JobRequest.RESUME)
                continue
            self.outcome.record = self.runner.parts.catalog.job(job_id)
            break
        self.outcome.moments = self.traffic.moment
        self._disarm()
        self._pass_moment()
        FAULTS.disarm()
        self.traffic.end()
        return self.outcome

    def _launch(self) -> JobId | None:
        """Runs the statement; gives its job, if it has one."""
        try:
            job_id = self._execute()
        except Crash:
            self._succeed()
            found = self.runner.parts.catalog.jobs(unfinished=True)
            if found:
                job_id = found[0].id
            elif self._is_untouched() or self.case.repeats:
                job_id = self._execute()
            else:
                job_id = None
        self._follow_twin()
        if job_id is not None:
            self._pass_moment()
        return job_id

    def _is_untouched(self) -> bool:
        return self.tables() == self.outcome.before and self.runner.epoch.schemas.newest.objects == self._objects

    def _execute(self) -> JobId | None:
        if self.case.waits:
            # All are in one thread: what it would wait for ends before.
            self.traffic.end_writers()
        with closing(Session(self.runner)) as session:
            if self.case.at_once:
                for statement in self.case.statement.split("; "):
                    session.execute(statement)
                return None
            session.execute("set seachange.concurrently = 'async'")
            text = asynchronous(self.case.statement)
            if text is None:
                return self._leave_job(session)
            ((job_id,),) = session.execute(text).rows
            return JobId(job_id)

    def _leave_job(self, session: Session) -> JobId:
        """For a statement that always waits for its job: the waiting session dies when the job exists."""
        FAULTS.arm("job.created", _die)
        try:
            session.execute(self.case.statement)
        except Crash:
            # If it was another point that it died at, there may be no job.
            if not FAULTS.counts().get("job.created"):
                raise
        (record,) = self.runner.parts.catalog.jobs(unfinished=True)
        return record.id

    def _go_on(self, job_id: JobId) -> Job:
        # No drain: transactions in flight are rebased.
        conditions = Conditions(_pause, SessionInterrupts(), self._told, drain_timeout_ms=0)
        with self.runner.jobs.holding(job_id):
            return self.runner.jobs.run(job_id, conditions)

    def _told(self, job: Job) -> None:
        # How often a job tells of rows that it has read, or of whom it waits for, depends on the clock.
        where = (job.status, job.progress, len(job.stages), len(job.units))
        if where == self._where:
            return
        self._where = where
        if not job.is_finished and job.status is not JobStatus.PAUSED:
            if job.can_be_canceled:
                self.outcome.revertible.add(self.traffic.moment + 1)
            self._pass_moment(job)

    def _pass_moment(self, job: Job | None = None) -> None:
        self._disarm()
        self.traffic.pass_moment()
        moment = self.traffic.moment
        table = self.table()
        if moment % 3 == 1 and table is not None:
            self._nodes[0].compact(table)
        self._spoil(moment)
        match self._interruption:
            case Interruption(how=How.CANCEL | How.PAUSE as how, moment=at) if at == moment and job is not None:
                request = JobRequest.CANCEL if how is How.CANCEL else JobRequest.PAUSE
                asked = job.can_be_canceled and self.runner.parts.catalog.request_job(job.id, request)
                self.outcome.interrupted = asked
            case Interruption(how=How.CRASH, moment=at, point=point) if at <= moment and not self.outcome.interrupted:
                FAULTS.arm(point, self._crash)
            case _:
                # So that points are counted.
                FAULTS.arm("migration.started", lambda: None)

    def _crash(self) -> None:
        self.outcome.interrupted = True
        raise Crash

    def _disarm(self) -> None:
        """Of the step that has ended it is known which points it has passed."""
        FAULTS.disarm()
        counts = FAULTS.counts()
        passed = [point for point in CRASHES if counts.get(point, 0) > self._counted.get(point, 0)]
        self.outcome.points.setdefault(self.traffic.moment, []).extend(passed)
        self._counted = counts

    def _succeed(self) -> None:
        """The process that ran the job has died, and its epoch with it; another takes its place."""
        FAULTS.disarm()
        self._nodes[0].parts.catalog.end_node(self.runner.epoch.epoch)
        self.runner.close()
        self.runner = open_quiet(self.place, "successor")
        self._follow_twin()
        self._pass_moment()

    def _follow_twin(self) -> None:
        """As soon as the change is there, and before anybody writes again."""
        if self.case.twin and not self._twinned and self.table() != self.outcome.before["t"]:
            self._twinned = True
            with closing(Session(self.runner)) as session:
                session.execute(self.case.twin)

    def _spoil(self, moment: int) -> None:
        """A transaction begun one moment before commits what stands against the change."""
        if self._interruption is None or self._interruption.how is not How.SPOIL or self.case.spoil is None:
            return
        at = self._interruption.moment
        if moment == at - 1:
            self._spoiler = Session(self._nodes[1])
            self._try_to_spoil("begin", *(self.case.spoil[0].format(t=table) for table in ("t", "w")))
        elif moment == at and self._spoiler is not None:
            self._try_to_spoil("commit")
            self._spoiler.close()
            self._spoiler = None
            self.outcome.interrupted = True

    def _try_to_spoil(self, *statements: str) -> None:
        assert self._spoiler is not None
        try:
            for statement in statements:
                if not self.outcome.spoiled:
                    self._spoiler.execute(statement)
        except errors.Error as problem:
            self.outcome.spoiled = problem.sqlstate
            self._spoiler.rollback()
