"""The log of a node: one line for each event, as text or JSON, on standard error or in a file that is rotated.

**Invariant:** writing never waits for the output: a thread writes, and what it cannot write in time is dropped and
counted. An entry is one line, whatever is in its fields.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Protocol

from seachange.runtime.clock import SYSTEM_CLOCK, Clock

_US = 1_000_000
# Entries that wait for the output; later ones are dropped.
_WAITING_MAX = 10_000
# For the entries that wait when the log is closed.
_CLOSING_SECONDS = 2.0
_WRITE_BYTES_MAX = 1 << 16
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MODE = 0o600

FieldValue = str | int | float | bool | None


class Severity(IntEnum):
    INFO = 1
    WARNING = 2
    ERROR = 3


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LogLine:
    at_us: int
    severity: Severity
    event: str
    fields: Mapping[str, FieldValue]

    def write(self, format_: LogFormat) -> str:
        """Without the fields that have no value."""
        at = (_EPOCH + dt.timedelta(microseconds=self.at_us)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {name: value for name, value in self.fields.items() if value is not None}
        level = self.severity.name.lower()
        if format_ is LogFormat.JSON:
            return json.dumps({"time": at, "level": level, "event": self.event, **fields})
        shown = "".join(f" {name}={_quoted(value)}" for name, value in fields.items())
        return f"{at} {level.upper():<7} {self.event}{shown}"


def _quoted(value: FieldValue) -> str:
    """
    >>> _quoted("ann"), _quoted("two words"), _quoted("a\\nb=1"), _quoted(1.50)
    ('ann', '"two words"', '"a\\\\nb=1"', '1.5')
    """
    if not isinstance(value, str):
        return json.dumps(value)
    is_plain = value.isascii() and value.isprintable() and value and not set(value) & set(' "=\\')
    return value if is_plain else json.dumps(value)


class LogOutput(Protocol):
    def write(self, lines: Iterable[str]) -> None:
        """Raises OSError."""

    def close(self) -> None: ...


class LogStream:
    """A file descriptor of the process, such as standard error, which stays open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, lines: Iterable[str]) -> None:
        _write_all(self._descriptor, lines)

    def close(self) -> None:
        pass


class LogFile:
    """A file that only its owner reads. When it has reached its size it becomes FILE.1, that FILE.2, and so on. A file
    that another program has moved away is opened again."""

    def __init__(self, path: Path, bytes_max: int, kept: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._kept = kept
        self._descriptor = self._open()

    def write(self, lines: Iterable[str]) -> None:
        self._follow()
        if self._bytes_max and os.fstat(self._descriptor).st_size >= self._bytes_max:
            self._rotate()
        _write_all(self._descriptor, lines)

    def close(self) -> None:
        os.close(self._descriptor)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _MODE)

    def _follow(self) -> None:
        own = os.fstat(self._descriptor)
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino):
            self._reopen()

    def _reopen(self) -> None:
        opened = self._open()
        os.close(self._descriptor)
        self._descriptor = opened

    def _rotate(self) -> None:
        names = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._kept + 1))]
        for older, newer in reversed(list(zip(names[1:], names, strict=False))):
            if newer.exists():
                newer.replace(older)
        if not self._kept:
            self._path.unlink(missing_ok=True)
        self._reopen()


def _write_all(descriptor: int, lines: Iterable[str]) -> None:
    # Surrogates stand for bytes of a client that are not text.
    data = "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")
    while data:
        data = data[os.write(descriptor, data[:_WRITE_BYTES_MAX]) :]


class EventLog:
    """`shows_literals`: entries may contain constants of statements, and values of rows in messages."""

    def __init__(
        self,
        output: LogOutput | None,
        format_: LogFormat = LogFormat.TEXT,
        shows_literals: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.is_on = output is not None
        self.shows_literals = shows_literals
        self._output = output
        self._format = format_
        self._clock = clock
        self._waiting: deque[LogLine] = deque()
        self._dropped = 0
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._write_waiting, name="seachange-log", daemon=True)
        if self.is_on:
            self._thread.start()

    def info(self, event: str, **fields: FieldValue) -> None:
        self.write(Severity.INFO, event, fields)

    def warning(self, event: str, **fields: FieldValue) -> None:
        self.write(Severity.WARNING, event, fields)

    def error(self, event: str, **fields: FieldValue) -> None:
        self.write(Severity.ERROR, event, fields)

    def write(self, severity: Severity, event: str, fields: Mapping[str, FieldValue]) -> None:
        if not self.is_on:
            return
        entry = LogLine(self._clock.wall_us(), severity, event, fields)
        with self._changed:
            if len(self._waiting) >= _WAITING_MAX or self._is_closed:
                self._dropped += 1
            else:
                self._waiting.append(entry)
                self._changed.notify()

    @property
    def dropped(self) -> int:
        """Entries that were dropped, and are not counted in the log yet."""
        with self._changed:
            return self._dropped

    def close(self) -> None:
        """Writes what waits, unless the output does not take it in time."""
        if not self.is_on:
            return
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(_CLOSING_SECONDS)

    def _write_waiting(self) -> None:
        assert self._output is not None
        while True:
            with self._changed:
                while not (self._waiting or self._is_closed):
                    self._changed.wait()
                entries, dropped = list(self._waiting), self._dropped
                self._waiting.clear()
                self._dropped = 0
                is_last = self._is_closed
            if dropped:
                note = LogLine(self._clock.wall_us(), Severity.WARNING, "log entries dropped", {"entries": dropped})
            if not self._try_write([*entries, note] if dropped else entries):
                # A full disk costs entries, and never a statement. They are counted with the next entry.
                with self._changed:
                    self._dropped += dropped + len(entries)
            if is_last:
                self._output.close()
                return

    def _try_write(self, entries: list[LogLine]) -> bool:
        assert self._output is not None
        try:
            self._output.write(entry.write(self._format) for entry in entries)
        except OSError:
            return False
        return True


# Writes nothing: of programs that have a database within their process.
SILENT = EventLog(None)
