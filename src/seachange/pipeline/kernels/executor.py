"""Who does the tasks of a backfill or a validation: this process, one after the other, or Spark.

**Invariant:** a task is a pure function of its fields and of files that never change: done twice, anywhere, it gives
files with the same rows. So whoever does it may fail, be killed, or be asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.merge import RANGE_ROWS_MAX
from seachange.pipeline.kernels.source import UNIT_ROWS_MAX
from seachange.pipeline.throttling.progress_meter import ProgressMeter
from seachange.runtime.process import give_way

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
# Is told how many rows of the tasks that are under way are done.
Look = Callable[[int], None]
# How often whoever waits for tasks looks at them.
TICK_SECONDS = 0.2


def nobody_looks(rows: int) -> None:
    pass


class Task(Protocol[T_co]):
    """A value that can be sent to another machine. It reads about so many bytes of files and writes about so many, in
    about `segments` files, those of one part of the work."""

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
        """About how many queries it is."""

    def run(self, kernel_context: KernelContext) -> T_co: ...


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows a unit reads, and about how many a range has."""

    unit_rows: int = UNIT_ROWS_MAX
    range_rows: int = RANGE_ROWS_MAX


class Executor(Protocol):
    @property
    def hands(self) -> int:
        """How many tasks it does at the same time."""

    def sizes(self, rows: int) -> Sizes:
        """How work on so many rows is cut. The same rows are cut alike in every attempt, or nothing could be kept."""

    def run(self, tasks: Sequence[Task[T]], done: Callable[[int, T], None], rows: Sequence[int] = ()) -> None:
        """Does all of them, in any order; `done` is told of each as it is finished, by its place, in the caller's
        thread. What a task or `done` raises ends the others. `rows` is what each counts for: whoever looks at the crew
        is told several times a second how many of those that are under way are done."""


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """One task after the other: DuckDB itself uses the cores. In a thread that gives way to those who serve clients, on
    this machine; the caller's may be one of them."""

    kernel_context: KernelContext
    fixed: Sizes = Sizes()
    hands: int = 1
    # Is called several times a second while a task runs, and may raise.
    look: Look = nobody_looks

    def sizes(self, rows: int) -> Sizes:
        return self.fixed

    def run(self, tasks: Sequence[Task[T]], done: Callable[[int, T], None], rows: Sequence[int] = ()) -> None:
        with ThreadPoolExecutor(1, "seachange-task", give_way) as hand:
            for number, task in enumerate(tasks):
                self.kernel_context.interrupts.check()
                self.kernel_context.throttling.wait_for_foreground(partial(self.look, 0))
                self.kernel_context.throttling.admit(task.read_bytes, task.write_bytes)
                meter = ProgressMeter(task.steps)
                future = hand.submit(task.run, replace(self.kernel_context, meter=meter))
                self._watch(future, meter, rows[number] if rows else 0)
                done(number, future.result())

    def _watch(self, future: Future[T], meter: ProgressMeter, rows: int) -> None:
        try:
            while not wait((future,), TICK_SECONDS).done:
                self.look(int(rows * meter.read()))
        except BaseException:
            # Nobody waits for it any more; between two queries it is asked again.
            while not wait((future,), TICK_SECONDS).done:
                meter.interrupt()
            raise


def run_all(executor: Executor, tasks: Sequence[Task[T]]) -> list[T]:
    """All results, in the order of the tasks."""
    results: dict[int, T] = {}
    executor.run(tasks, results.__setitem__)
    return [results[number] for number in range(len(tasks))]
