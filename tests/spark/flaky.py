"""Tasks that go wrong. Executors do not know this module: it is sent along."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seachange import errors
from seachange.pipeline.workshop import Workshop


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

    def run(self, workshop: Workshop) -> list[int]:
        before = len(list(self.folder.iterdir()))
        (self.folder / f"{before}-{os.getpid()}").touch()
        taken = workshop.take(1)
        Path(workshop.warehouse.files.path(f"{taken[0]}")).write_text("x")
        if before < self.failing:
            self.fail(workshop)
        return [int(id_) for id_ in taken]

    def fail(self, workshop: Workshop) -> None:
        match self.how:
            case "raise":
                raise RuntimeError("an executor has a bad day")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "refuse":
                raise errors.DivisionByZero()
            case "ask":
                workshop.take(5)
            case _:
                time.sleep(60)


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

    def run(self, workshop: Workshop) -> Any:
        result = self.task.run(workshop)
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
    """Stops halfway until somebody has seen that it is there."""

    gate: Path
    segments: int = 0
    title: str = "a task that waits to be seen"
    read_bytes: int = 0
    write_bytes: int = 0
    steps: int = 2

    def run(self, workshop: Workshop) -> bool:
        began = time.monotonic()
        with workshop.meter.watching(HalfDone()):
            while not self.gate.exists() and time.monotonic() < began + 30:
                time.sleep(0.05)
        return self.gate.exists()
