"""A node with clients that never rest: short transactions on table t, in a process of its own, measured and counted.

Open loop: transactions are due at fixed times, and one that starts late because those before it took long counts
from when it was due. Closed loop: the next begins when the last has ended.
"""

import atexit
import gc
import random
import threading
import time
from collections import Counter
from itertools import count

from bench import subject
from bench.peers.protocol import Answer, serve
from bench.rows import make_row

INSERT = "insert into t (id, a, b, t, k) values (%s, %s, %s, %s, %s)"
UPDATE = "update t set a = a + 1 where id = %s"
LOOK_UP = "select a, b from t where id = %s"


class Load:
    """Transactions of one session: a look-up and an update by key, and an insert, in one block."""

    def __init__(self, data: str, catalog: str | None, rows: range, first_id: int) -> None:
        self._database = subject.connect(data, catalog)
        self._database.autocommit = False
        self._cursor = self._database.cursor()
        self._random = random.Random(first_id)
        self._rows = rows
        self._ids = count(first_id)
        self.errors: Counter[str] = Counter()

    def transact(self) -> None:
        try:
            self._cursor.execute(LOOK_UP, (self._random.choice(self._rows),))
            self._cursor.fetchall()
            self._cursor.execute(UPDATE, (self._random.choice(self._rows),))
            self._cursor.execute(INSERT, make_row(next(self._ids)))
            self._database.commit()
        except subject.Error as error:
            self.errors[error.sqlstate] += 1
            self._database.rollback()

    def close(self) -> None:
        self._database.close()


class Process:
    """One load at a time, in a thread that can be stopped."""

    def open(self, folder: str, first_id: int, rows: int, first_row: int = 0, catalog: str | None = None) -> Answer:
        """Opens the table; `rows` of it exist and are read and updated, inserted ones are numbered from `first_id`."""
        self.load = Load(folder, catalog, range(first_row, first_row + rows), first_id)
        # Python's collector of cycles stops every thread for as long as it takes to look at all that was imported. An
        # application that minds its slowest hundredth does this, and so the slowest are those of the database.
        gc.collect()
        gc.freeze()
        atexit.register(gc.unfreeze)
        return {}

    def start(self, rate: float = 0.0) -> Answer:
        """Starts the load: that many transactions per second, or as many as possible."""
        self.until = threading.Event()
        self.seconds: list[float] = []
        self.begun = time.perf_counter()
        self.thread = threading.Thread(target=self._open_loop if rate else self._closed_loop, args=(rate,))
        self.thread.start()
        return {}

    def stop(self) -> Answer:
        """Stops the load: the seconds of each transaction, the duration of the load, and the failures."""
        self.until.set()
        self.thread.join()
        elapsed = time.perf_counter() - self.begun
        errors, self.load.errors = self.load.errors, Counter()
        return {"seconds": self.seconds, "elapsed": elapsed, "errors": dict(errors)}

    def close(self) -> Answer:
        self.load.close()
        return {}

    def _closed_loop(self, _rate: float) -> None:
        while not self.until.is_set():
            start = time.perf_counter()
            self.load.transact()
            self.seconds.append(time.perf_counter() - start)

    def _open_loop(self, rate: float) -> None:
        for number in count():
            due = self.begun + number / rate
            if self.until.wait(max(0.0, due - time.perf_counter())):
                return
            self.load.transact()
            self.seconds.append(time.perf_counter() - due)


if __name__ == "__main__":
    serve(Process())
