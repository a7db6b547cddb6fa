"""Who does the tasks of a backfill or a validation: this process, one after the other, or Spark.

**Invariant:** a task is a pure function of its fields and of files that never change: done twice, anywhere, it gives
files with the same rows. So whoever does it may fail, be killed, or be asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from seachange.pipeline.merge import RANGE_ROWS_MAX
from seachange.pipeline.source import UNIT_ROWS_MAX
from seachange.pipeline.workshop import Workshop
from seachange.runtime.process import give_way

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


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

    def run(self, workshop: Workshop) -> T_co: ...


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows a unit reads, and about how many a range has."""

    unit_rows: int = UNIT_ROWS_MAX
    range_rows: int = RANGE_ROWS_MAX


class Crew(Protocol):
    @property
    def hands(self) -> int:
        """How many tasks it does at the same time."""

    def sizes(self, rows: int) -> Sizes:
        """How work on so many rows is cut. The same rows are cut alike in every attempt, or nothing could be kept."""

    def run(self, tasks: Sequence[Task[T]], done: Callable[[int, T], None]) -> None:
        """Does all of them, in any order; `done` is told of each as it is finished, by its place, in the caller's
        thread. What a task or `done` raises ends the others."""


@dataclass(frozen=True, slots=True)
class LocalCrew:
    """One task after the other: DuckDB itself uses the cores. In a thread that gives way to those who serve clients, on
    this machine; the caller's may be one of them."""

    workshop: Workshop
    fixed: Sizes = Sizes()
    hands: int = 1

    def sizes(self, rows: int) -> Sizes:
        return self.fixed

    def run(self, tasks: Sequence[Task[T]], done: Callable[[int, T], None]) -> None:
        with ThreadPoolExecutor(1, "seachange-task", give_way) as hand:
            for number, task in enumerate(tasks):
                self.workshop.interrupts.check()
                self.workshop.manners.admit(task.read_bytes, task.write_bytes)
                done(number, hand.submit(task.run, self.workshop).result())


def run_all(crew: Crew, tasks: Sequence[Task[T]]) -> list[T]:
    """All results, in the order of the tasks."""
    results: dict[int, T] = {}
    crew.run(tasks, results.__setitem__)
    return [results[number] for number in range(len(tasks))]
