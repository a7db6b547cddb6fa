"""Throttling of background jobs: disk reserve, I/O rate, back-off under foreground load.

**Invariant:** no task is started that would leave less free space than the reserve, counting what running tasks have
yet to write; so writers and the catalog do not run out of space because of a job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from seachange import errors
from seachange.pipeline.throttling.backoff import Foreground
from seachange.runtime.clock import SYSTEM_CLOCK, Clock
from seachange.runtime.filesystem import FileSystem

_US = 1_000_000
# How long a task that is held back waits before it checks again.
HOLD_SECONDS = 0.25
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def _no_pause(seconds: float) -> None:
    raise errors.Bug(detail="work that has no limit waits for one")


@dataclass(slots=True)
class Throttling:
    """Without `files` space is not checked, and 0 bytes per second means no limit. `pause` may raise to end the
    work."""

    files: FileSystem | None = None
    spare_bytes: int = 0
    bytes_per_second: int = 0
    pause: Callable[[float], None] = _no_pause
    clock: Clock = SYSTEM_CLOCK
    foreground: Foreground | None = None
    # Why no task is started now, in words.
    waiting: str = ""
    # The time at which the next task may begin.
    _next_us: int = 0
    _begun: set[str] = field(default_factory=set)
    # The space that the last refused task needed.
    _lacking_bytes: int = 0

    def begin(self, name: str, what: str, needed_bytes: int) -> None:
        """Raises if the whole work does not fit. Once it has begun it waits for space instead."""
        if self.files is None or name in self._begun:
            return
        free = self.files.free_bytes()
        if free < needed_bytes + self.spare_bytes:
            raise errors.WillNotFit(
                what=what,
                needed=describe_size(needed_bytes),
                spare=describe_size(self.spare_bytes),
                free=describe_size(free),
                folder=self.files.address,
            )
        self._begun.add(name)

    def has_room(self, needed_bytes: int) -> bool:
        """Whether so much can be written beside the reserve."""
        return self.files is None or self.files.free_bytes() >= needed_bytes + self.spare_bytes

    def check_space(self) -> None:
        """Raises as long as there is no space for the task that was refused; cheaper than starting the work again."""
        problem = self._problem(self._lacking_bytes)
        if problem is not None:
            raise problem

    def is_free(self, write_bytes: int) -> bool:
        """Whether a task could start at once."""
        return self._seconds_left() <= 0 and self._problem(write_bytes) is None

    def is_held_back(self) -> bool:
        """Whether no task may start because the statements of clients have become slow."""
        self.waiting = self.foreground.reason() if self.foreground is not None else ""
        return bool(self.waiting)

    def wait_for_foreground(self, on_wait: Callable[[], None]) -> None:
        """Called before every task; `on_wait` is called while it waits, and may raise."""
        while self.is_held_back():
            on_wait()
            self.pause(HOLD_SECONDS)
        if self.foreground is not None:
            self.foreground.begin()

    def admit(self, read_bytes: int, write_bytes: int, running_bytes: int = 0) -> None:
        """Called before every task: waits for the I/O rate limit, and raises if there is no space for what it and the
        running tasks write."""
        if (seconds := self._seconds_left()) > 0:
            self.pause(seconds)
        problem = self._problem(write_bytes + running_bytes)
        self._lacking_bytes = write_bytes + running_bytes if problem is not None else 0
        if problem is not None:
            raise problem
        if self.bytes_per_second:
            took_us = (read_bytes + write_bytes) * _US // self.bytes_per_second
            self._next_us = max(self._next_us, self.clock.steady_us()) + took_us

    def _seconds_left(self) -> float:
        return (self._next_us - self.clock.steady_us()) / _US if self.bytes_per_second else 0.0

    def _problem(self, write_bytes: int) -> errors.LowDisk | None:
        # A task that only reads needs no space.
        if self.files is None or not write_bytes:
            return None
        free = self.files.free_bytes()
        needed = write_bytes + self.spare_bytes
        if free >= needed:
            return None
        return errors.LowDisk(folder=self.files.address, needed=describe_size(needed), free=describe_size(free))


def describe_size(size_bytes: int) -> str:
    """A size in binary units.

    >>> describe_size(0), describe_size(1_536), describe_size(3 << 40), describe_size(5 << 50)
    ('0 bytes', '1.5 kB', '3.0 TB', '5120.0 TB')
    """
    size, unit = float(size_bytes), 0
    while size >= 1_024 and unit < len(_UNITS) - 1:
        size, unit = size / 1_024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size_bytes} bytes"
