"""The traffic: point reads, inserts, updates and deletes, due at fixed times; standard library only.

What starts late because those before it took long counts from when it was due. Nothing is tried again: whatever
raises has failed.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from itertools import count, cycle
from random import Random
from typing import Protocol

from bench.headline.changes import PARENT_ROWS
from bench.peers.protocol import Answer
from bench.rows import make_row

# The shares of the kinds, and their order.
PATTERN = ("read", "insert", "read", "update", "read", "delete", "read", "insert", "read", "update")
# Rows that traffic inserts lie above those that were loaded.
FIRST_ID = 10**9
SEED = 20_261_116
MESSAGE_LENGTH_MAX = 160


class Store(Protocol):
    """Each method is one transaction."""

    def read(self, row_id: int) -> None: ...

    def insert(self, row_id: int, a: int, b: float, k: str) -> None: ...

    def update(self, row_id: int, a: int) -> None: ...

    def delete(self, row_id: int) -> None: ...


class Traffic:
    """At most one thread at a time uses the store."""

    def __init__(self, store: Store, rows: int) -> None:
        self._store = store
        self._rows = rows
        self._random = Random(SEED)
        self._ids = count(FIRST_ID)
        self._own: deque[int] = deque()
        self._kinds = cycle(PATTERN)

    def start(self, rate: float) -> None:
        self._until = threading.Event()
        self._seconds: list[float] = []
        self._errors: Counter[str] = Counter()
        self._begun = time.perf_counter()
        self._thread = threading.Thread(target=self._run, args=(rate,), daemon=True)
        self._thread.start()

    def stop(self) -> Answer:
        """The latency of each transaction from its due time in seconds, the duration of the traffic, and the
        failures."""
        self._until.set()
        self._thread.join()
        elapsed = time.perf_counter() - self._begun
        return {"seconds": self._seconds, "elapsed": elapsed, "errors": dict(self._errors)}

    def _run(self, rate: float) -> None:
        actions: dict[str, Callable[[], None]] = {
            "read": self._read,
            "insert": self._insert,
            "update": self._update,
            "delete": self._delete,
        }
        for number, kind in zip(count(), self._kinds, strict=False):
            due = self._begun + number / rate
            if self._until.wait(max(0.0, due - time.perf_counter())):
                return
            try:
                actions[kind]()
            except Exception as error:  # noqa: BLE001 - of any driver: counted, and told
                self._errors[f"{type(error).__name__}: {error}"[:MESSAGE_LENGTH_MAX]] += 1
            else:
                self._seconds.append(time.perf_counter() - due)

    def _read(self) -> None:
        self._store.read(self._random.randrange(self._rows))

    def _insert(self) -> None:
        row_id, a, b, _, k = make_row(next(self._ids))
        self._store.insert(row_id, a % PARENT_ROWS, b, k)
        self._own.append(row_id)

    def _update(self) -> None:
        self._store.update(self._random.randrange(self._rows), self._random.randrange(PARENT_ROWS))

    def _delete(self) -> None:
        if self._own:
            self._store.delete(self._own[0])
            self._own.popleft()
