"""Nodes of one process over one database, on which a trace is replayed: sessions, a job taken step by step, compaction.

**Invariant:** nothing happens by itself: workers and keepers of the nodes are paused, and every wait has an end.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from seachange import errors
from seachange.changer.drain import Drain
from seachange.changer.job import Job, read_job
from seachange.changer.ports import Lost, Stopped
from seachange.changer.runner import JobRunner
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.jobs.job_commits import NodeChanges
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.jobs.restored_rows import RowRestorer
from seachange.engine.jobs.spark_pipeline import job_pipeline
from seachange.engine.node.maintenance import compact_index
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.change.ops import OpType
from seachange.model.jobs import JobId, JobRequest
from seachange.runtime.faults import FAULTS
from tests.support.nodes import HOUR_MS, Place, open_ported_node
from tests.support.patience import PATIENCE_S

# There is no drain: min_version may be raised at any time.
NO_DRAIN_MS = 0


class _Stepped(Stopped):
    """The job has taken a step."""


class Cluster:
    """`writers` nodes for transactions, and two more, which run jobs in turn and compact."""

    def __init__(self, place: Place, writers: int, without_fence: frozenset[str] = frozenset()) -> None:
        names = [*(f"writer {n + 1}" for n in range(writers)), "worker 1", "worker 2"]
        # No heartbeat comes in time to change anything.
        self.nodes = [
            open_ported_node(place, name, HOUR_MS, without_fence=without_fence if "writer" in name else frozenset())
            for name in names
        ]
        for node in self.nodes:
            node.jobs.paused = True
        self.writers = self.nodes[:-2]
        self.workers = self.nodes[-2:]
        self.admin = Session(self.workers[1])
        self.admin.execute("set seachange.concurrently = 'async'")

    def close(self) -> None:
        FAULTS.disarm()
        self.admin.close()
        for node in self.nodes:
            node.close()

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        return list(self.admin.execute(text).rows)

    def collect(self) -> None:
        for node in self.nodes:
            if not node.epoch.ended:
                node.follow()
                node.beat()
        self.workers[1].collect_garbage(0)


class Change:
    """A statement that changes the schema, and the steps of its job, taken by one worker after the other."""

    def __init__(self, cluster: Cluster, statement: str) -> None:
        self._cluster = cluster
        self._turn = 0
        self.halted: Halted | None = None
        found = cluster.admin.execute(in_background(statement)).rows
        self.job_id = JobId(found[0][0]) if found else None
        self._settle()

    def read(self) -> Job | None:
        if self.job_id is None:
            return None
        record = self._cluster.workers[0].parts.catalog.job(self.job_id)
        assert record is not None
        return read_job(record)

    @property
    def is_over(self) -> bool:
        job = self.read()
        return job is None or job.is_finished

    def step(self, crash: bool = False) -> Job:
        """One step, by the worker whose turn it is. `crash`: it dies in the middle of a backfill, if that is the step,
        and the next one goes on."""
        self._turn += 1
        worker = self._cluster.workers[self._turn % 2]
        before = self.read()
        assert before is not None
        assert self.job_id is not None

        def told(job: Job) -> None:
            stepped = len(job.stages) > len(before.stages) or job.status is not before.status
            stepped |= job.converted_at != before.converted_at
            if stepped or job.errors_met or (crash and job.units):
                raise _Stepped

        conditions = Conditions(lambda seconds: None, SessionInterrupts(), told, NO_DRAIN_MS)
        with suppress(_Stepped):
            worker.jobs.run(self.job_id, conditions)
        after = self.read()
        assert after is not None
        # Looking again for a row without a value counts as an attempt.
        looked = after.converted_at != before.converted_at
        assert after.errors_met <= before.errors_met + looked, self.errors()
        return self.step() if after.units else self._settle() or after

    def _settle(self) -> Job | None:
        """What is left when only the collector has work is to say so: no step of a model."""
        job = self.read()
        if job is None or job.is_finished or any(stage.type is not OpType.COLLECTION for stage in job.rest().stages):
            return None
        assert self.job_id is not None
        conditions = Conditions(lambda seconds: None, SessionInterrupts(), lambda job: None, NO_DRAIN_MS)
        return self._cluster.workers[self._turn % 2].jobs.run(self.job_id, conditions)

    def errors(self) -> list[str]:
        return [event for (event,) in self._cluster.rows("select event from seachange.events") if "error" in event]

    def cancel(self) -> Job:
        assert self.job_id is not None
        self._cluster.workers[0].parts.catalog.request_job(self.job_id, JobRequest.CANCEL)
        return self.step()

    def run(self) -> None:
        """To its end."""
        while not self.is_over:
            self.step()

    # A worker that is stopped, and comes back when others have gone on.

    def halt(self) -> None:
        job = self.read()
        if job is not None and not job.is_finished:
            self.halted = Halted(self._cluster.workers[0], job)

    def wake(self) -> BaseException | None:
        """What the worker gets that was stopped; None where there was none."""
        halted, self.halted = self.halted, None
        return halted.wake() if halted is not None else None


class Halted:
    """A worker in the middle of a step: its work is done, its commit is not asked for."""

    def __init__(self, node: Node, job: Job) -> None:
        self._arrived, self._go = threading.Event(), threading.Event()
        self._problem: BaseException | None = None
        changes: Any = _Halting(NodeChanges(node.parts, node.epoch), self._wait)
        clock = node.parts.clock
        drain = Drain(changes, clock, lambda seconds: None, NO_DRAIN_MS)
        pipeline = job_pipeline(node.parts, node.epoch, SessionInterrupts(), job, node.retention.us)
        restorer = RowRestorer(node.parts, node.epoch, SessionInterrupts())
        runner = JobRunner(changes, pipeline, restorer, drain, clock, lambda seconds: None)
        self._thread = threading.Thread(target=self._run, args=(runner, job), daemon=True)
        self._thread.start()
        assert self._arrived.wait(PATIENCE_S)

    def _wait(self) -> None:
        self._arrived.set()
        assert self._go.wait(PATIENCE_S)

    def _run(self, runner: JobRunner, job: Job) -> None:
        try:
            runner.run(job)
        except (Lost, errors.Error) as problem:
            self._problem = problem
        self._arrived.set()

    def wake(self) -> BaseException:
        self._go.set()
        self._thread.join(PATIENCE_S)
        assert self._problem is not None, "a worker that had lost its job went on with it"
        return self._problem


class _Halting:
    def __init__(self, changes: NodeChanges, wait: Callable[[], None]) -> None:
        self._changes = changes
        self._wait = wait

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._changes, name)
        if name not in ("publish", "raise_versions", "attach", "record"):
            return found

        def late(*arguments: Any) -> Any:
            self._wait()
            return found(*arguments)

        return late


class Compaction:
    """A compaction that has written its segments, and waits before it swaps them in."""

    def __init__(self, node: Node, table: str, index: str) -> None:
        self._arrived, self._go = threading.Event(), threading.Event()
        self._folded: bool | None = None
        node.epoch.catch_up()
        described = node.epoch.schemas.newest.within().by_name["public", table]
        found = next(i for i in described.indexes if i.name == index)
        FAULTS.arm("compaction.written", self._wait)
        self._thread = threading.Thread(
            target=self._run, args=(lambda: compact_index(node.parts, node.epoch, described, found, True),), daemon=True
        )
        self._thread.start()
        assert self._arrived.wait(PATIENCE_S)

    def _wait(self) -> None:
        self._arrived.set()
        assert self._go.wait(PATIENCE_S)

    def _run(self, work: Callable[[], bool]) -> None:
        self._folded = work()
        self._arrived.set()

    def finish(self) -> bool:
        """Whether its generation was taken."""
        self._go.set()
        self._thread.join(PATIENCE_S)
        FAULTS.disarm()
        assert self._folded is not None
        return self._folded


def in_background(statement: str) -> str:
    """As a statement that gives the id of its job at once; what never takes a job is sent as it is.

    >>> in_background("create unique index u on t (a)")
    'create unique index concurrently u on t (a)'
    """
    for start in ("alter table ", "create unique index ", "create index ", "drop index "):
        if statement.startswith(start):
            return f"{start}concurrently {statement.removeprefix(start)}"
    return statement
