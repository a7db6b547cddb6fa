"""A fair lock before SQLite's own, whose busy handler can starve other processes.

A process that wants the lock first queues for the place of the next one; a process that releases the lock and wants it
again finds that place taken, so a waiter is overtaken at most once by each other process.

**Invariant:** the kernel releases a dead process's locks; nothing here outlives its holder.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from types import TracebackType

from seachange.runtime.permissions import create_file


class FairLock:
    """Exclusive between threads and between processes. Not reentrant."""

    def __init__(self, path: Path) -> None:
        self._thread_next, self._thread = threading.Lock(), threading.Lock()
        flags = os.O_RDWR | os.O_CLOEXEC
        next_path = path.with_name(f"{path.name}-next")
        create_file(next_path)
        create_file(path)
        self._file_next = os.open(next_path, flags)
        self._file = os.open(path, flags)

    def acquire(self) -> None:
        with self._thread_next:
            self._thread.acquire()
        try:
            fcntl.flock(self._file_next, fcntl.LOCK_EX)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            finally:
                fcntl.flock(self._file_next, fcntl.LOCK_UN)
        except BaseException:
            self._thread.release()
            raise

    def release(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self._thread.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def close(self) -> None:
        os.close(self._file_next)
        os.close(self._file)
