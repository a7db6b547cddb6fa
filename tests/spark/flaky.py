"""Tasks that go wrong. Executors do not know this module: it is sent along."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from seachange import errors
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.runtime import faults
from tests.support.patience import PATIENCE_S


@dataclass(frozen=True)
class Troubled:
    """Leaves a mark in a folder at every attempt; the first `failing` of them end as `how` says."""

    folder: Path
    how: str
    failing: int = 1
    segments: int = 1
    title: str = "a task in trouble"
    read_bytes: int = 0
    write_bytes: int = 0
    steps: int = 1

    def run(self, kernel_context: KernelContext) -> list[int]:
        before = len(list(self.folder.iterdir()))
        (self.folder / f"{before}-{os.getpid()}").touch()
        taken = kernel_context.take(1)
        Path(kernel_context.warehouse.files.address, f"{taken[0]}").write_text("x")
        if before < self.failing:
            self.fail(kernel_context)
        return [int(id_) for id_ in taken]

    def fail(self, kernel_context: KernelContext) -> None:
        match self.how:
            case "raise":
                raise RuntimeError("an executor has a bad day")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "refuse":
                raise errors.DivisionByZero()
            case "ask":
                kernel_context.take(5)
            case _:
                time.sleep(10 * PATIENCE_S)


@dataclass(frozen=True)
class FailsOnce:
    """Does what another task does, and then fails, the first time."""

    task: Any
    folder: Path

    @property
    def title(self) -> str:
        return str(self.task.title)

    @property
    def segments(self) -> int:
        return int(self.task.segments)

    @property
    def read_bytes(self) -> int:
        return int(self.task.read_bytes)

    @property
    def write_bytes(self) -> int:
        return int(self.task.write_bytes)

    @property
    def steps(self) -> int:
        return int(self.task.steps)

    def run(self, kernel_context: KernelContext) -> Any:
        result = self.task.run(kernel_context)
        mark = self.folder / self.title.replace(" ", "_")
        if not mark.exists():
            mark.touch()
            raise RuntimeError("an executor is lost with its work done")
        return result


class HalfDone:
    """Has done one of two steps, always."""

    def steps_done(self) -> float:
        return 1.0

    def interrupt(self) -> None:
        pass


@dataclass(frozen=True)
class Halfway:
    """Stops halfway until the test has seen it."""

    gate: Path
    segments: int = 0
    title: str = "a task that waits to be seen"
    read_bytes: int = 0
    write_bytes: int = 0
    steps: int = 2

    def run(self, kernel_context: KernelContext) -> bool:
        began = time.monotonic()
        with kernel_context.meter.watching(HalfDone()):
            while not self.gate.exists() and time.monotonic() < began + PATIENCE_S:
                time.sleep(0.05)
        return self.gate.exists()


@dataclass(frozen=True)
class FailsAtTheEnd:
    """A function over the batches of a partition, which passes them all on and then fails, the first time."""

    folder: Path
    how: str
    partition: int = 1

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        mark = self.folder / f"{self.how}-{context.partitionId()}"
        if context.partitionId() == self.partition and not mark.exists():
            mark.touch()
            if self.how == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("a partition has a bad day")


@dataclass(frozen=True)
class ArmedWorker:
    """Has the Python worker that it is sent to die when it has next published a segment, unless another has."""

    mark: Path

    def __call__(self, number: int) -> int:
        # Named by its module: what is in it is the worker's own.
        faults.FAULTS.arm("segment.published", self.die)
        # So that another worker takes the next of these.
        time.sleep(0.5)
        return number

    def die(self) -> None:
        if not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
