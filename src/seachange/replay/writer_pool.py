"""The writer processes of a replay, each with a node of its own.

A writer that ends by itself is reported as a failure; the replay continues.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from seachange import errors
from seachange.replay.assignment import LEFT, READY, WriterAssignment, WriterOrder
from seachange.replay.tally import WriterTally

_COMMAND = (sys.executable, "-m", "seachange.replay.writer_process")
_END_SECONDS_MAX = 60


class WriterPool:
    """A context manager that leaves no writer behind."""

    def __init__(self, assignments: Sequence[WriterAssignment]) -> None:
        self._processes = [_start(assignment) for assignment in assignments]
        self._left: frozenset[str] = frozenset()
        for process in self._processes:
            _receive(process, READY)

    def leave(self, tables: Collection[str]) -> None:
        """Returns when no transaction of a writer uses these tables any more; others may be used again."""
        if frozenset(tables) == self._left:
            return
        self._left = frozenset(tables)
        for process in self._processes:
            with suppress(errors.WriterLost):
                _send(process, "\t".join([WriterOrder.LEAVE, *sorted(tables)]))
        for process in self._processes:
            with suppress(errors.WriterLost):
                _receive(process, LEFT)

    def stop(self) -> WriterTally:
        total = WriterTally()
        for process in self._processes:
            with suppress(errors.WriterLost):
                _send(process, WriterOrder.STOP)
        for process in self._processes:
            try:
                total.add(WriterTally.from_json(_receive(process)))
                process.wait(_END_SECONDS_MAX)
            except errors.WriterLost as lost:
                total.fail(lost.sqlstate, str(lost), "its own message is on standard error")
        return total

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


def _start(assignment: WriterAssignment) -> subprocess.Popen[str]:
    process = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    _send(process, assignment.to_line())
    return process


def _send(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        raise errors.WriterLost(process=process.pid) from None


def _receive(process: subprocess.Popen[str], expected: str | None = None) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().rstrip("\n")
    if not line or (expected is not None and line != expected):
        raise errors.WriterLost(process=process.pid)
    return line
