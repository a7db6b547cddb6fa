"""The task context of kernels: files, a spill folder, new segment ids, interrupts and limits.

**Invariant:** work can be interrupted between steps, before every file that is written, and inside DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import duckdb

from seachange.model.ids import SegmentId
from seachange.pipeline.kernels.rebuild import Translate
from seachange.pipeline.throttling.progress_meter import ProgressMeter
from seachange.pipeline.throttling.throttle import Throttling
from seachange.storage.segment_writer import Reserve
from seachange.storage.sorter import Sorter
from seachange.storage.spill import Connect, SortLimits, sorting_connection
from seachange.storage.warehouse import Warehouse


class TaskInterrupts(Protocol):
    def check(self) -> None:
        """Raises if the work is to stop."""

    def reaching(self, running: Sorter) -> AbstractContextManager[None]:
        """An interrupt ends the query that `running` runs."""


def _keep(ids: Sequence[SegmentId]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class KernelContext:
    """`translate` converts DuckDB's errors to those for the client. `give_up` makes reserved segments that were not
    reported garbage at once; `leave` does so when the epoch ends, for segments that may still be written."""

    warehouse: Warehouse
    spill: Path
    reserve: Reserve
    interrupts: TaskInterrupts
    translate: Translate
    limits: SortLimits = SortLimits()  # noqa: RUF009 - a value
    give_up: Callable[[Sequence[SegmentId]], None] = _keep
    leave: Callable[[Sequence[SegmentId]], None] = _keep
    # Used by the executor that starts the tasks.
    throttling: Throttling = field(default_factory=Throttling)
    # The meter of the running task.
    meter: ProgressMeter = field(default_factory=ProgressMeter)
    connect: Connect = sorting_connection

    @contextmanager
    def sorter(self) -> Iterator[Sorter]:
        """A sorter whose queries can be interrupted."""
        made = Sorter(self.warehouse.files, self.spill, self.take, self.limits, self.connect)
        with made as sorter, self.meter.watching(sorter), self.interrupts.reaching(sorter):
            try:
                yield sorter
            except duckdb.Error as problem:
                self.interrupts.check()
                raise self.translate(problem) from problem

    def take(self, count: int) -> Sequence[SegmentId]:
        self.interrupts.check()
        return self.reserve(count)
