"""The commands of every process of the comparison: traffic in a thread, changes and the probe in the main one."""

import atexit
import gc
import time
from abc import ABC, abstractmethod

from bench.headline.changes import PROBE
from bench.headline.traffic import Traffic
from bench.peers.protocol import Answer

TABLE = "t"
ATTEMPTS = 3


class Contestant(ABC):
    """A system, and the store that the traffic uses. Traffic and changes never use one connection at the same time."""

    _traffic: Traffic

    @abstractmethod
    def read(self, row_id: int) -> None: ...

    @abstractmethod
    def insert(self, row_id: int, a: int, b: float, k: str) -> None: ...

    @abstractmethod
    def update(self, row_id: int, a: int) -> None: ...

    @abstractmethod
    def delete(self, row_id: int) -> None: ...

    @abstractmethod
    def _make(self, change: str, table: str) -> None:
        """Makes the change; raises if existing rows violate it."""

    def attend(self, rows: int) -> Answer:
        """Prepares for traffic on a table with that many rows."""
        self._traffic = Traffic(self, rows)
        # Python's collector of cycles stops every thread; the slowest transactions shall be those of the database.
        gc.collect()
        gc.freeze()
        atexit.register(gc.unfreeze)
        return {}

    def start(self, rate: float) -> Answer:
        self._traffic.start(rate)
        return {}

    def stop(self) -> Answer:
        return self._traffic.stop()

    def change(self, change: str) -> Answer:
        """The seconds until the change is made; a change that loses a conflict with the traffic is retried a few
        times."""
        start = time.perf_counter()
        for attempt in range(ATTEMPTS):
            try:
                self._make(change, TABLE)
            except Exception:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                break
        return {"seconds": time.perf_counter() - start, "attempts": attempt + 1}

    def probe(self, change: str) -> Answer:
        """Whether a constraint is rejected that a row of the table violates."""
        try:
            self._make(change, PROBE)
        except Exception as error:  # noqa: BLE001 - of any driver: told
            return {"validated": True, "said": str(error).splitlines()[0]}
        return {"validated": False, "said": ""}
