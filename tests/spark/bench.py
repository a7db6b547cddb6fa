"""A crew on an application of Spark's, and what it is given."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from seachange.engine.context.interrupts import SessionInterrupts
from seachange.model.ids import SegmentId
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.spark.host import AnyApplication
from seachange.pipeline.spark.packed_task import Site
from seachange.pipeline.spark.spark_executor import SparkExecutor
from seachange.sql.translate.duck_errors import translate_error
from seachange.storage.spill import SortLimits
from tests.spark.flaky import Troubled
from tests.storage.samples import Store


class Bench:
    """A crew with what it was told, and what became of the ids."""

    def __init__(self, folder: Path, application: AnyApplication) -> None:
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.store = Store(folder / "segments")
        self.interrupts = SessionInterrupts()
        self.told: list[str] = []
        self.given_up: list[SegmentId] = []
        self.left: list[SegmentId] = []
        self.reserved: list[SegmentId] = []
        kernel_context = KernelContext(
            self.store.warehouse,
            folder / "spill",
            self.reserve,
            self.interrupts,
            translate_error,
            give_up=self.given_up.extend,
            leave=self.left.extend,
        )
        site = Site(str(folder / "segments"), str(folder / "spill"), SortLimits(threads=1), translate_error)
        self.executor = SparkExecutor(application, site, kernel_context, lambda rows: None, self.told.append)

    def reserve(self, count: int) -> list[SegmentId]:
        ids = self.store.reserve(count)
        self.reserved += ids
        return ids

    def run(self, *tasks: Troubled, done: Callable[[int, Any], None] | None = None) -> dict[int, Any]:
        results: dict[int, Any] = {}
        self.executor.run(tasks, done or results.__setitem__)
        return results

    def attempts(self) -> list[int]:
        """The processes of the attempts."""
        return [int(mark.name.rpartition("-")[2]) for mark in sorted(self.marks.iterdir())]
