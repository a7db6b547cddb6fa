"""Running things at the same time, and hearing of it when one fails."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

T = TypeVar("T")


def together(*actions: Callable[[], T]) -> list[T]:
    """Runs the actions in threads that all start at once; gives their results, raises what one of them raised."""
    start = Barrier(len(actions))

    def run(action: Callable[[], T]) -> T:
        start.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        futures = [pool.submit(run, action) for action in actions]
        return [future.result() for future in futures]
