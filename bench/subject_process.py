"""Seachange in a process of its own, answering the same requests as the peers, and more."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bench import subject
from bench.data import COLUMNS
from bench.peers.protocol import Answer, serve, time_each
from bench.rows import Row, make_row, make_rows

INSERT = "insert into t values (%s, %s, %s, %s, %s)"
LOOK_UP = {key: f"select * from t where {key} = %s" for key in ("id", "k")}
UPDATE = {key: f"update t set a = a + 1 where {key} = %s" for key in ("id", "k")}
UPDATES_PER_COMMIT = 100


class Session:
    """One connection with one cursor."""

    def __init__(self, data: str, catalog: str | None) -> None:
        self.database = subject.connect(data, catalog)
        self.cursor = self.database.cursor()

    def insert(self, row: Row) -> None:
        self.cursor.execute(INSERT, row)

    def insert_until(self, end: float, first_id: int) -> list[float]:
        """Inserts row after row until the clock shows `end`; the seconds of each."""
        seconds: list[float] = []
        started = time.monotonic()
        while started < end:
            self.insert(make_row(first_id + len(seconds)))
            finished = time.monotonic()
            seconds.append(finished - started)
            started = finished
        return seconds

    def look_up(self, key: str, value: object) -> None:
        self.cursor.execute(LOOK_UP[key], (value,))
        (row,) = self.cursor.fetchall()
        assert value in row


class Process:
    def open(self, folder: str, catalog: str | None = None, key: str = "id") -> Answer:
        """Opens a database; the first to do so passes the key of the table to create."""
        self.folder = folder
        self.catalog = catalog
        self.session = Session(folder, catalog)
        if key:
            self.session.cursor.execute(f"create table t ({COLUMNS}, primary key ({key}))")
        return {}

    def close(self) -> Answer:
        self.session.database.close()
        return {}

    def count(self) -> Answer:
        self.session.cursor.execute("select count(*) from t")
        return {"rows": self.session.cursor.fetchall()[0][0]}

    def commit(self, first_id: int, count: int) -> Answer:
        return {"seconds": time_each(self.session.insert, make_rows(first_id, count))}

    def commit_window(self, start: float, window_seconds: float, first_id: int) -> Answer:
        """Commits for as long as the window is open; `start` is a time of the machine's clock."""
        time.sleep(max(0.0, start - time.monotonic()))
        return {"seconds": self.session.insert_until(start + window_seconds, first_id)}

    def commit_sessions(self, sessions: int, window_seconds: float) -> Answer:
        """Commits from several sessions of this node at the same time."""
        opened = [Session(self.folder, self.catalog) for _ in range(sessions)]
        before = subject.catalog_commits(self.session.database)
        seconds = commit_in_threads(opened, time.monotonic() + window_seconds)
        after = subject.catalog_commits(self.session.database)
        for session in opened:
            session.database.close()
        return {"seconds": seconds, "catalog_commits": after - before}

    def load(self, source: str) -> Answer:
        start = time.perf_counter()
        subject.load_parquet(self.session.database, "t", Path(source))
        return {"seconds": time.perf_counter() - start, "memory_bytes_max": memory_bytes_max()}

    def compact(self) -> Answer:
        subject.compact(self.session.database, "t")
        return {}

    def compactions(self) -> Answer:
        return {"compactions": subject.compactions(self.session.database)}

    def update(self, key: str, values: list[object]) -> Answer:
        """Adds one to `a` of each row named, many rows to a commit."""
        database = self.session.database
        database.autocommit = False
        for first in range(0, len(values), UPDATES_PER_COMMIT):
            for value in values[first : first + UPDATES_PER_COMMIT]:
                self.session.cursor.execute(UPDATE[key], (value,))
            database.commit()
        database.autocommit = True
        return {}

    def aggregate(self, sql: str) -> Answer:
        start = time.perf_counter()
        self.session.cursor.execute(sql)
        (row,) = self.session.cursor.fetchall()
        return {"seconds": time.perf_counter() - start, "row": list(row)}

    def look_up(self, key: str, values: list[object]) -> Answer:
        return {"seconds": time_each(lambda value: self.session.look_up(key, value), values)}


def commit_in_threads(sessions: Sequence[Session], end: float) -> list[list[float]]:
    """Each session in a thread; an error in one of them is an error of the whole."""
    seconds: list[list[float] | BaseException] = [[] for _ in sessions]

    def run(number: int) -> None:
        try:
            seconds[number] = sessions[number].insert_until(end, number * 10**9)
        except Exception as error:  # noqa: BLE001 - raised again by the caller's thread
            seconds[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [raise_or_return(outcome) for outcome in seconds]


def raise_or_return(outcome: list[float] | BaseException) -> list[float]:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def memory_bytes_max() -> int:
    """This process's highest resident memory; unlike getrusage, without that of its parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not tell the peak memory")


if __name__ == "__main__":
    serve(Process())
