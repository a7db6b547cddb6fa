"""An executor on Spark: each task is a Spark job of one task, as many concurrently as there are slots.

So a unit is known to be finished as soon as it is, in any order; Spark places tasks, and retries those whose executor
dies.

**Invariant:** file ids are reserved before a task is sent, and a task's result is used once. Files of lost attempts
stay reserved until the epoch ends, since their writers may still be running.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pyspark import cloudpickle

from seachange import errors
from seachange.model.ids import SegmentId
from seachange.pipeline.kernels.executor import TICK_SECONDS, OnProgress, Sizes, Task
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.merge import RANGE_ROWS_MAX
from seachange.pipeline.kernels.source import UNIT_ROWS_MAX
from seachange.pipeline.spark.host import AnyApplication
from seachange.pipeline.spark.packed_task import VERSIONS, Again, Failed, Finished, Outcome, PackedTask, Site, Trace
from seachange.pipeline.spark.progress_file import read_signs, sign_of
from seachange.runtime.threads import ThreadPool
from seachange.storage.segment_footer import SEGMENT_ROWS_MAX
from seachange.storage.spill import temporary_folder

T = TypeVar("T")

# Work is divided into about this many tasks, so that they are evenly distributed, but not into tasks of less than a
# second.
_TASKS = 16
_TASK_ROWS_MIN = 500_000
# Ids are reserved for the first attempts at a task; after those it is sent again, once.
_ATTEMPTS = 2
_ROUNDS_MAX = 2


@dataclass(slots=True)
class _Sent:
    place: int
    ids: tuple[tuple[SegmentId, ...], ...]
    round: int


@dataclass(frozen=True, slots=True)
class SparkExecutor:
    """`on_progress` is called several times a second while tasks run, and may raise; `log_event` adds a line to the job
    log."""

    application: AnyApplication
    site: Site
    kernel_context: KernelContext
    on_progress: OnProgress
    log_event: Callable[[str], None]
    cores: int = 0
    fixed: Sizes | None = None

    @property
    def parallelism(self) -> int:
        slots = self.application.slots
        return min(slots, self.cores) if self.cores else slots

    def sizes(self, rows: int) -> Sizes:
        if self.fixed is not None:
            return self.fixed
        # Whole segments, since a unit does not contain parts of one.
        wanted = -(-max(rows // _TASKS, _TASK_ROWS_MIN) // SEGMENT_ROWS_MAX) * SEGMENT_ROWS_MAX
        return Sizes(min(wanted, UNIT_ROWS_MAX), _even_range(rows, min(wanted, RANGE_ROWS_MAX)))

    def run(self, tasks: Sequence[Task[T]], done: Callable[[int, T], None], rows: Sequence[int] = ()) -> None:
        if not tasks:
            return
        self.log_event(f"sends {_tasks(len(tasks))} to Spark application {self.application}: {tasks[0].title}")
        parallelism = self.parallelism
        # One task waits in Spark while all slots are taken, so that a slot gets its next task at once. With fewer cores
        # than slots nothing may wait there, or it would run.
        sent_max = parallelism + 1 if parallelism == self.application.slots else parallelism
        with (
            temporary_folder(self.kernel_context.spill) as signs,
            self.application.group() as group,
            ThreadPool(sent_max, "spark-task") as pool,
        ):
            task_run = _TaskRun(self, sent_max, pool, group, tasks, done, rows, signs, self.application.speculates)
            try:
                task_run.work()
            except BaseException:
                task_run.end()
                raise
        self.log_event(
            f"Spark application {self.application} finished {_tasks(len(tasks))}: {_places(task_run.traces)}"
        )


@dataclass(slots=True)
class _TaskRun:
    """The tasks of one run. Everything but the wait for Spark happens in the caller's thread."""

    executor: SparkExecutor
    sent_max: int
    pool: ThreadPool
    group: str
    tasks: Sequence[Task[Any]]
    done: Callable[[int, Any], None]
    rows: Sequence[int]
    # The folder of progress files.
    signs: Path
    # Whether attempts at a task can run concurrently.
    speculates: bool
    sent: dict[Future[Outcome], _Sent] = field(default_factory=dict)
    traces: list[Trace] = field(default_factory=list)

    def work(self) -> None:
        left = deque(range(len(self.tasks)))
        while left or self.sent:
            self._fill(left)
            ready, _ = wait(self.sent, TICK_SECONDS, FIRST_COMPLETED)
            self.executor.kernel_context.interrupts.check()
            self.executor.on_progress(self._rows_under_way())
            # Results are recorded before a failure ends the run.
            for future in sorted(ready, key=lambda one: one.exception() is not None):
                self._take(future.result(), self.sent.pop(future))

    def _rows_under_way(self) -> int:
        if not self.rows:
            return 0
        done = read_signs(self.signs)
        return sum(int(self.rows[sent.place] * done.get(sent.place, 0.0)) for sent in self.sent.values())

    def _fill(self, left: deque[int]) -> None:
        """Sends as many tasks as there are slots and disk space for. Running tasks are not ended for lack of space."""
        throttling = self.executor.kernel_context.throttling
        while left and len(self.sent) < self.sent_max:
            task = self.tasks[left[0]]
            # Running tasks have yet to write their output.
            running_bytes = (
                sum(self.tasks[sent.place].write_bytes for sent in self.sent.values()) if task.write_bytes else 0
            )
            if self.sent and (throttling.is_held_back() or not throttling.is_free(task.write_bytes + running_bytes)):
                return
            throttling.wait_for_foreground(partial(self.executor.on_progress, 0))
            throttling.admit(task.read_bytes, task.write_bytes, running_bytes)
            self._send(left.popleft(), task.segments, 1)

    def _send(self, place: int, count: int, number: int) -> None:
        reserve = self.executor.kernel_context.reserve
        reserved = tuple(reserve(count * _ATTEMPTS)) if count else ()
        ids = tuple(reserved[start * count : (start + 1) * count] for start in range(_ATTEMPTS))
        assignment = PackedTask(self.tasks[place], self.executor.site, ids, sign_of(self.signs, place))
        payload = pickle.dumps((VERSIONS, cloudpickle.dumps(assignment)))
        call = self.executor.application.call
        future = self.pool.submit(call, payload, self.group, self.tasks[place].title)
        self.sent[future] = _Sent(place, ids, number)

    def _take(self, outcome: Outcome, sent: _Sent) -> None:
        self.traces.append(outcome.trace)
        self._release_ids(outcome, sent)
        match outcome:
            case Finished():
                self.done(sent.place, outcome.result)
            case Failed():
                raise errors.remembered(outcome.sqlstate, outcome.message, outcome.hint)
            case Again():
                self._send_again(outcome, sent)

    def _release_ids(self, outcome: Outcome, sent: _Sent) -> None:
        """Ids that this attempt did not use are abandoned now. Those of other attempts that may still run are left to
        the end of the epoch: earlier ones, and with speculation later ones."""
        used = set(outcome.used) if isinstance(outcome, Finished) else set()
        first = outcome.trace.attempt
        end = first + 1 if self.speculates else len(sent.ids)
        self.executor.kernel_context.leave([id_ for ids in (*sent.ids[:first], *sent.ids[end:]) for id_ in ids])
        self.executor.kernel_context.give_up([id_ for ids in sent.ids[first:end] for id_ in ids if id_ not in used])

    def _send_again(self, outcome: Again, sent: _Sent) -> None:
        if outcome.too_few:
            # However wide its rows are, the number of ids becomes sufficient.
            self._send(sent.place, len(sent.ids[0]) * 2 + 2, sent.round)
            return
        if sent.round >= _ROUNDS_MAX:
            raise errors.SparkFailed(
                detail=f"executors were lost too often: {self.tasks[sent.place].title}",
                log=self.executor.application.log,
            )
        self._send(sent.place, len(sent.ids[0]), sent.round + 1)

    def end(self) -> None:
        """Sends nothing more, and kills the running tasks."""
        for sent in self.sent.values():
            self.executor.kernel_context.leave([id_ for ids in sent.ids for id_ in ids])
        for future in self.sent:
            future.cancel()
        # A thread may be about to start a job: cancel until all have ended.
        while not all(future.done() for future in self.sent):
            self.executor.application.cancel(self.group)
            wait(self.sent, TICK_SECONDS)


def _even_range(rows: int, rows_max: int) -> int:
    """An even number of ranges of equal size, so that the last one does not leave cores idle. It depends on the rows
    alone, since the number of cores may differ when the work is resumed.

    >>> _even_range(10_000_000, 983_040), _even_range(900_000, 983_040)
    (833334, 983040)
    """
    ranges = -(-rows // rows_max)
    return -(-rows // (ranges + ranges % 2)) if ranges > 1 else rows_max


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


def _places(traces: Sequence[Trace]) -> str:
    """The tasks and their hosts: 3, 4, 5 on a, b."""
    ids = ", ".join(str(id_) for id_ in sorted(trace.task_id for trace in traces))
    hosts = ", ".join(sorted({trace.host for trace in traces}))
    retried = sum(trace.attempt > 0 for trace in traces)
    again = f", {retried} retried" if retried else ""
    return f"{ids} on {hosts}{again}"
