"""The progress of a task on an executor, reported to the driver as the length of a file in a shared folder.

A file that only grows can be read at any time, over any file system, and costs the executor a byte now and then.

**Invariant:** failing to report progress never fails a task.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from seachange.pipeline.throttling.progress_meter import ProgressMeter

# The length of the file for a whole task.
_WHOLE = 1_000
_SECONDS = 0.4


class ProgressFile:
    """Reports while it is entered, if `sign` is not empty."""

    def __init__(self, meter: ProgressMeter, sign: str, attempt: int) -> None:
        self._meter = meter
        self._path = f"{sign}.{attempt}" if sign else ""
        self._reported = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="seachange-beacon", daemon=True)

    def __enter__(self) -> None:
        if self._path:
            self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        if self._path:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_SECONDS):
            self.report()

    def report(self) -> None:
        done = int(self._meter.read() * _WHOLE)
        # The driver may be gone, with the folder.
        if done > self._reported:
            with suppress(OSError), open(self._path, "ab") as file:
                file.write(b"." * (done - self._reported))
                self._reported = done


def sign_of(folder: Path, place: int) -> str:
    return str(folder / str(place))


def read_signs(folder: Path) -> dict[int, float]:
    """The fraction done of each task that has reported, by its most advanced attempt."""
    found: dict[int, float] = {}
    with suppress(OSError), os.scandir(folder) as files:
        for file in files:
            place, _, attempt = file.name.partition(".")
            if attempt:
                found[int(place)] = max(found.get(int(place), 0.0), min(file.stat().st_size / _WHOLE, 1.0))
    return found
