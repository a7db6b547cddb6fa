"""Starting threads: one that cannot start is a want of memory, which all callers expect, not an error of its own.

Systems limit the number of threads by memory too, and by the number of processes of a user or container.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from seachange.runtime.memory_wall import MEMORY_WALL

P = ParamSpec("P")
T = TypeVar("T")


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


class ThreadPool(ThreadPoolExecutor):
    """Its threads start as `start_thread` starts them: `submit` starts one if none is idle."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        with starting_threads():
            return super().submit(fn, *args, **kwargs)


def start_thread(thread: threading.Thread) -> None:
    with starting_threads():
        thread.start()
