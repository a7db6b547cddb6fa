"""The shutdown of a server within its grace period.

**Invariant:** the process ends within the grace period that begins with the signal. Work that did not stop by then ends
with the process; the node's epoch is ended in the catalog first, so that other nodes do not wait for its expiry.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from seachange.engine.node.node import Node
from seachange.errors import Error
from seachange.runtime.clock import SYSTEM_CLOCK

_US = 1_000_000


class Ending:
    def __init__(self, grace_seconds: float) -> None:
        self._grace_us = round(grace_seconds * _US)
        # None: no signal has been received.
        self._deadline_us: int | None = None

    def begin(self) -> None:
        self._deadline_us = SYSTEM_CLOCK.steady_us() + self._grace_us

    def close(self, node: Node) -> None:
        """Closes the node before the deadline, or leaves it."""
        if not self._run(node.close):
            self.leave(node)

    def leave(self, node: Node) -> NoReturn:
        """Ends the process while statements or jobs are still running."""
        print(f"node {node.name} exits with work that did not stop", file=sys.stderr)
        with suppress(Error):
            self._run(node.abandon)
        sys.stdout.flush()
        sys.stderr.flush()
        # The interpreter and DuckDB would wait for threads that run a query.
        os._exit(0)

    def _run(self, work: Callable[[], None]) -> bool:
        """Runs it on a thread until the deadline; returns False if it is not done by then."""

        problems: list[Error] = []

        def attempt() -> None:
            try:
                work()
            except Error as problem:
                problems.append(problem)

        thread = threading.Thread(target=attempt, name="seachange-ending", daemon=True)
        thread.start()
        deadline_us = self._deadline_us
        thread.join(None if deadline_us is None else max(deadline_us - SYSTEM_CLOCK.steady_us(), 0) / _US)
        if problems:
            raise problems[0]
        return not thread.is_alive()
