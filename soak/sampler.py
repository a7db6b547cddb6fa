"""Measurements of growth: resource usage of processes, size of the data folder, duration of transactions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from soak.checker.growth import Sample
from soak.checker.model import Outcome
from soak.checker.records import Record
from soak.history import now_us
from soak.processes import Place, measure

SECOND = 1_000_000
EVERY_US = 5 * SECOND
WARM_UP_US = 60 * SECOND


class Sampler:
    def __init__(self, data: Path, start_us: int) -> None:
        self.samples: list[Sample] = []
        self._data = data
        self._start_us = start_us
        self._due_us = start_us

    def poll(self, places: Iterable[Place]) -> None:
        now = now_us()
        if now < self._due_us:
            return
        self._due_us = now + EVERY_US
        for place in places:
            if now - place.started_us > WARM_UP_US and place.poll() is None:
                self._take(place)
        if now - self._start_us > WARM_UP_US:
            files, size = measure_folder(self._data)
            self._note("the data folder", "files", files)
            self._note("the data folder", "bytes", size)

    def take_round(self, records: Iterable[Record]) -> None:
        """Transactions without think time should have a constant latency."""
        spans = [r.ended - r.commit_began for r in records if r.outcome is Outcome.COMMITTED and r.ended is not None]
        if spans and now_us() - self._start_us > WARM_UP_US:
            self._note("commits", "latency", median(spans) / SECOND)

    def _take(self, place: Place) -> None:
        found = measure(place.pid)
        if found is not None:
            subject = f"{place.name} (start {place.starts})"
            self._note(subject, "memory", found.rss_bytes)
            self._note(subject, "threads", found.threads)
            self._note(subject, "open files", found.files)

    def _note(self, subject: str, name: str, value: float) -> None:
        self.samples.append(Sample(subject, name, value))


def measure_folder(folder: Path) -> tuple[int, int]:
    files = size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            if name != "filler":
                try:
                    size += os.stat(os.path.join(path, name)).st_size
                except FileNotFoundError:
                    continue
                files += 1
    return files, size
