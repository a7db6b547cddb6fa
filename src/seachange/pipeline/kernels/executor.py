"""Executors run the tasks of a backfill or a validation: in this process, one after the other, or on Spark.

**Invariant:** a task is a pure function of its fields and of immutable files: repeated anywhere, it writes files with
the same rows. So an executor may fail, be killed, or run a task again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.merge import RANGE_ROWS_MAX
from seachange.pipeline.kernels.source import UNIT_ROWS_MAX
from seachange.pipeline.throttling.progress_meter import ProgressMeter
from seachange.runtime.process import give_way
from seachange.runtime.threads import ThreadPool

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
# Receives the number of finished rows of the running tasks.
OnProgress = Callable[[int], None]
# Around a task that the meter's `interrupt` reaches. Raises another error than the one that an interrupt causes.
WatchTask = Callable[[ProgressMeter], AbstractContextManager[None]]
# How often running tasks are polled.
TICK_SECONDS = 0.2


def ignore_progress(rows: int) -> None:
    pass


def unwatched(_: ProgressMeter) -> AbstractContextManager[None]:
    return nullcontext()


class Task(Protocol[T_co]):
    """A value that can be sent to another machine. Its estimates: bytes read, bytes written, and the number of
    `segments` written."""

    @property
    def title(self) -> str: ...

    @property
    def segments(self) -> int: ...

    @property
    def read_bytes(self) -> int: ...

    @property
    def write_bytes(self) -> int: ...

    @property
    def steps(self) -> int:
        """An estimate of the number of queries."""

    def run(self, kernel_context: KernelContext) -> T_co: ...


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of rows that a unit reads, and about how many a range has."""

    unit_rows: int = UNIT_ROWS_MAX
    range_rows: int = RANGE_ROWS_MAX


class Executor(Protocol):
    @property
    def parallelism(self) -> int:
        """The number of tasks that run concurrently."""

    def sizes(self, rows: int) -> Sizes:
        """How work on this many rows is divided. The division must be the same in every attempt, or no unit could be
        reused."""

    def run(self, tasks: Sequence[Task[T]], done: Callable[[int, T], None], rows: Sequence[int] = ()) -> None:
        """Runs all tasks, in any order. `done` is called in the caller's thread for each finished task, with its place.
        An exception of a task or of `done` ends the others. `rows` is the weight of each task for progress, which is
        reported several times a second."""


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Runs one task after the other: DuckDB itself uses the cores. The thread has a lower priority than those that
    serve clients on this machine; the caller's may be one of them."""

    kernel_context: KernelContext
    fixed: Sizes = Sizes()
    parallelism: int = 1
    # Called several times a second while a task runs; may raise.
    on_progress: OnProgress = ignore_progress
    watch: WatchTask = unwatched

    def sizes(self, rows: int) -> Sizes:
        return self.fixed

    def run(self, tasks: Sequence[Task[T]], done: Callable[[int, T], None], rows: Sequence[int] = ()) -> None:
        with ThreadPool(1, "seachange-task", give_way) as pool:
            for number, task in enumerate(tasks):
                self.kernel_context.interrupts.check()
                self.kernel_context.throttling.wait_for_foreground(partial(self.on_progress, 0))
                self.kernel_context.throttling.admit(task.read_bytes, task.write_bytes)
                meter = ProgressMeter(task.steps)
                with self.watch(meter):
                    future = pool.submit(task.run, replace(self.kernel_context, meter=meter))
                    self._wait_for(future, meter, rows[number] if rows else 0)
                    result = future.result()
                done(number, result)

    def _wait_for(self, future: Future[T], meter: ProgressMeter, rows: int) -> None:
        try:
            while not wait((future,), TICK_SECONDS).done:
                self.on_progress(int(rows * meter.read()))
        except BaseException:
            # Interrupt it until it ends: an interrupt between two queries has no effect.
            while not wait((future,), TICK_SECONDS).done:
                meter.interrupt()
            raise


def run_all(executor: Executor, tasks: Sequence[Task[T]]) -> list[T]:
    """All results, in the order of the tasks."""
    results: dict[int, T] = {}
    executor.run(tasks, results.__setitem__)
    return [results[number] for number in range(len(tasks))]
