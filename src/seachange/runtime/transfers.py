"""Several transfers at a time, by threads that end with the statement that waits for them.

**Invariant:** a transfer may go on for a while after its statement was interrupted, so it opens what it writes itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, wait
from typing import Any, TypeVar

from seachange.runtime.interruption import InterruptedBy, check_interrupt
from seachange.runtime.threads import ThreadPool

T = TypeVar("T")
R = TypeVar("R")

_TRANSFERS = 8
# An interruption is noticed after this time.
_CHECK_SECONDS = 0.1


def transfer_all(transfer: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The results in the order of the items. A statement that is interrupted does not wait for the requests that are
    under way."""
    if not items:
        return []
    ended = threading.Event()

    def check() -> None:
        if ended.is_set():
            raise CancelledError

    def until_ended(item: T) -> R:
        with InterruptedBy(check):
            return transfer(item)

    pool = ThreadPool(min(_TRANSFERS, len(items)), "seachange-download")
    try:
        tasks = [pool.submit(until_ended, item) for item in items]
        while not _are_done(tasks):
            check_interrupt()
    finally:
        ended.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return [task.result() for task in tasks]


def _are_done(tasks: Sequence[Future[Any]]) -> bool:
    """Whether all tasks have ended, after a short wait; raises the error of the first that has failed."""
    found = wait(tasks, _CHECK_SECONDS, FIRST_EXCEPTION)
    for task in found.done:
        task.result()
    return not found.not_done
