"""A limit on the memory of this process at which allocations fail, for a statement that no interrupt reaches in time.

DuckDB checks for an interrupt between two vectors of rows, and does not count the values inside an expression: one
vector of large values may need more memory than the machine has. An allocation that fails ends such a statement as an
error, and its memory is released.

Another thread may meet the same failure meanwhile, between any two steps. A statement in autocommit is then run again
(`engine/session/statement_loop.py`), any other fails like a statement without memory. Work in the background is tried
again (`engine/context/background.py`), and tasks of jobs are. A commit that may have taken place is
looked up by its id (`commit` of both catalogs), never reported as failed. A node that was changing what its sessions
share discards all of it with its epoch (`engine/replica/epoch.py`).

**Invariant:** the limit exists only while a statement or task that has exceeded its own limit is still running, and
not while a thread begins (`lifted`): one that finds no memory for its first call never tells that it has begun, and
`Thread.start` would wait for ever.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

# What all other sessions may allocate until the statement has ended.
RESERVE_BYTES: Final = 256 << 20
_STATM = Path("/proc/self/statm")
_DATA = 5


class MemoryWall:
    """One per process, since the limit is the process's. Several statements may need it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._lifts = 0
        # The limit, and what it was before; None if it is not needed.
        self._limits: tuple[int, int] | None = None
        self._before: tuple[int, int] | None = None

    def put_up(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limit()

    def take_down(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._before is not None:
                resource.setrlimit(resource.RLIMIT_DATA, self._before)
                self._before = self._limits = None

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """For what cannot fail for want of memory, and takes little time."""
        with self._lock:
            self._lifts += 1
            if self._before is not None:
                resource.setrlimit(resource.RLIMIT_DATA, self._before)
        try:
            yield
        finally:
            with self._lock:
                self._lifts -= 1
                self._apply()

    def _limit(self) -> None:
        # Systems that do not report or limit the memory of a process have the interrupt alone.
        with suppress(OSError, ValueError, IndexError):
            pages = int(_STATM.read_text().split()[_DATA])
            limit = pages * os.sysconf("SC_PAGE_SIZE") + RESERVE_BYTES
            soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
            if soft == resource.RLIM_INFINITY or limit < soft:
                # First: `take_down` must know it, whatever fails here.
                self._before, self._limits = (soft, hard), (limit, hard)
                self._apply()

    def _apply(self) -> None:
        if self._limits is not None and not self._lifts:
            resource.setrlimit(resource.RLIMIT_DATA, self._limits)


MEMORY_WALL: Final = MemoryWall()
