"""What the watchdog of a node needs of a statement or task that it watches, and how one is watched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class WatchedSession(Protocol):
    @property
    def is_settled(self) -> bool:
        """Whether the statement has committed, so that it can no longer be cancelled."""

    def interrupt(self) -> None: ...


# Around work that may take a time in milliseconds, and let the process grow by a number of bytes; 0 is unlimited.
Watch = Callable[[WatchedSession, int, int], AbstractContextManager[None]]
