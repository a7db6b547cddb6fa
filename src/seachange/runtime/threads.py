"""Starting threads: one that cannot start is a want of memory, which all callers expect, not an error of its own.

Systems limit the number of threads by memory too, and by the number of processes of a user or container.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from seachange.runtime.memory_wall import MEMORY_WALL


@contextmanager
def starting_threads() -> Iterator[None]:
    """Around work that starts a thread. Raises MemoryError if the system grants none."""
    with MEMORY_WALL.lifted():
        try:
            yield
        except RuntimeError as problem:
            if "start new thread" not in str(problem):
                raise
            raise MemoryError("the system grants no more threads") from problem


def start_thread(thread: threading.Thread) -> None:
    with starting_threads():
        thread.start()
