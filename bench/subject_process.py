"""Seachange in a process of its own, which answers the requests of the peers and more."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench import subject
from bench.data import COLUMNS
from bench.peers.protocol import Answer, plain_rows, serve, span, time_each
from bench.rows import Row, make_row, make_rows

INSERT = "insert into t (id, a, b, t, k) values (%s, %s, %s, %s, %s)"
LOOK_UP = {
    "id": "select * from t where id = %s",
    "k": "select * from t where k = %s",
    # The same rows, by a condition that no index is used for and that costs DuckDB nothing.
    "k scanned": "select * from t where k = %s or false",
}
UPDATE = {key: f"update t set a = a + 1 where {key} = %s" for key in ("id", "k")}
UPDATES_PER_COMMIT = 100
FILES = "select segment_id, size_bytes from seachange.segments where table_name = %s order by 1"
SET = "update t set a = %s where id = %s"
DELETE = "delete from t where id = %s"
# What the processes are called that Spark runs kernels in.
KERNELS = b"seachange.pipeline.spark.daemon"


class Session:
    """One connection with one cursor."""

    def __init__(self, data: str, catalog: str | None, local: str | None = None) -> None:
        self.database = subject.connect(data, catalog, local)
        self.cursor = self.database.cursor()

    def insert(self, row: Row) -> None:
        self.cursor.execute(INSERT, row)

    def insert_until(self, end: float, first_id: int) -> list[float]:
        """Inserts rows until the clock shows `end`; returns the seconds of each."""
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


@dataclass(frozen=True, slots=True)
class Changes:
    """One kind of change of one row, by SQL and without."""

    by_sql: Callable[[subject.Cursor, Row], object]
    bare: Callable[[subject.BareStore, Row], object]


def updated(row: Row) -> Row:
    return (row[0], row[1] + 1, *row[2:])


CHANGES = {
    "insert": Changes(
        lambda cursor, row: cursor.execute(INSERT, row),
        lambda store, row: store.insert("t", row),
    ),
    "update": Changes(
        lambda cursor, row: cursor.execute(SET, (row[1] + 1, row[0])),
        lambda store, row: store.update("t", row, updated(row)),
    ),
    "delete": Changes(
        lambda cursor, row: cursor.execute(DELETE, (row[0],)),
        lambda store, row: store.delete("t", updated(row)),
    ),
}


# Those that the peers have too, and those that only a database with constraints and indexes has.
SPANNED = {
    "ADD COLUMN": "alter table t add column c{} integer default 7",
    "SET DEFAULT": "alter table t alter column a set default {}",
    "COMMENT": "comment on table t is '{}'",
    "ADD CHECK": "alter table t add constraint check{} check (id >= 0)",
    "CREATE UNIQUE INDEX": "create unique index on t (id, a)",
}


class Process:
    def open(
        self, folder: str, catalog: str | None = None, key: str = "id", index: str = "", local: str | None = None
    ) -> Answer:
        """Opens a database; the first caller passes the key of the table to create, and of an index on it."""
        self.folder = folder
        self.catalog = catalog
        self.local = local
        self.session = Session(folder, catalog, local)
        if key:
            self.session.cursor.execute(f"create table t ({COLUMNS}, primary key ({key}))")
        if index:
            self.session.cursor.execute(f"create index on t ({index})")
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
        """Commits while the window is open; `start` is a time of the machine's clock."""
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

    def load(self, source: str, table: str = "t") -> Answer:
        start = time.perf_counter()
        subject.load_parquet(self.session.database, table, Path(source))
        return {"seconds": time.perf_counter() - start, "memory_bytes_max": memory_bytes_max()}

    def compact(self, table: str = "t") -> Answer:
        subject.compact(self.session.database, table)
        return {}

    def pause_compaction(self) -> Answer:
        with closing(subject.BareStore(self.folder, self.catalog, self.local)) as store:
            store.pause_compaction()
        return {}

    def files(self, table: str) -> Answer:
        """The addresses and sizes of the files of a table without indexes."""
        self.session.cursor.execute(FILES, (table,))
        found = self.session.cursor.fetchall()
        urls = [f"{self.folder}/segments/{number:016x}.parquet" for number, _ in found]
        return {"urls": urls, "bytes": [size for _, size in found]}

    def compactions(self) -> Answer:
        return {"compactions": subject.compactions(self.session.database)}

    def update(self, key: str, values: list[object]) -> Answer:
        """Adds one to `a` of each given row, many rows per commit."""
        database = self.session.database
        database.autocommit = False
        for first in range(0, len(values), UPDATES_PER_COMMIT):
            for value in values[first : first + UPDATES_PER_COMMIT]:
                self.session.cursor.execute(UPDATE[key], (value,))
            database.commit()
        database.autocommit = True
        return {}

    def change_rows(self, kind: str, first_id: int, count: int) -> Answer:
        """Changes rows one by one, alternately by a statement and without SQL; returns the seconds of each."""
        changes = CHANGES[kind]
        by_sql, bare = [], []
        with closing(subject.BareStore(self.folder, self.catalog)) as store:
            for row_id in range(first_id, first_id + 2 * count, 2):
                row, other = make_row(row_id), make_row(row_id + 1)
                by_sql += time_each(lambda row: changes.by_sql(self.session.cursor, row), [row])
                bare += time_each(lambda row: changes.bare(store, row), [other])
        return {"by_sql": by_sql, "bare": bare}

    def execute(self, sql: str) -> Answer:
        """Runs any statement; returns its seconds."""
        start = time.perf_counter()
        self.session.cursor.execute(sql)
        return {"seconds": time.perf_counter() - start}

    def warm_spark(self) -> Answer:
        """Statements of this session run on Spark from now on; a statement on a scratch table starts it."""
        self.session.cursor.execute("set seachange.local_rows = 0")
        self.session.cursor.execute("create table warm (id bigint primary key, k text)")
        self.session.cursor.execute("insert into warm select i, 'k' || i from generate_series(1, 10000) as r(i)")
        self.session.cursor.execute("create index on warm (k)")
        self.session.cursor.execute("drop table warm")
        return {}

    def memory(self) -> Answer:
        """The peak memory of this process, and of the largest process in which Spark runs kernels."""
        return {"driver": memory_bytes_max(), "kernel": max(map(memory_bytes_max, kernel_processes()), default=0)}

    def span_changes(self, count: int) -> Answer:
        """Transactions of one session, with changes by another."""
        writer = Session(self.folder, self.catalog)
        writer.database.autocommit = False
        self.session.cursor.execute("set seachange.drain_timeout = '10ms'")

        def attempt(change: str, number: int) -> bool:
            writer.cursor.execute("insert into t (id, a) values (%s, 1)", (number,))
            self.session.cursor.execute(change.format(number))
            try:
                writer.database.commit()
            except subject.Error:
                return False
            return True

        answer = span(SPANNED, count, attempt)
        writer.database.close()
        return answer

    def query(self, sql: str) -> Answer:
        """The seconds and the rows of any query as JSON values, or the reason why it is rejected."""
        start = time.perf_counter()
        try:
            self.session.cursor.execute(sql)
        except subject.Refusal as error:
            return {"refused": f"{error.sqlstate}: {error}"}
        rows = self.session.cursor.fetchall()
        return {"seconds": time.perf_counter() - start, "rows": plain_rows(rows)}

    def aggregate(self, sql: str) -> Answer:
        start = time.perf_counter()
        self.session.cursor.execute(sql)
        (row,) = self.session.cursor.fetchall()
        return {"seconds": time.perf_counter() - start, "row": list(row)}

    def look_up(self, key: str, values: list[object]) -> Answer:
        return {"seconds": time_each(lambda value: self.session.look_up(key, value), values)}


def commit_in_threads(sessions: Sequence[Session], end: float) -> list[list[float]]:
    """Each session in a thread; an error in one of them is raised."""
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


def kernel_processes() -> list[str]:
    """The Python workers of Spark applications of this user's; there is one application while anything is measured."""
    commands = ((path.parent.name, path) for path in Path("/proc").glob("[0-9]*/cmdline"))
    return [number for number, path in commands if KERNELS in read_bytes(path)]


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        # It has ended meanwhile.
        return b""


def memory_bytes_max(process: str = "self") -> int:
    """A process's highest resident memory; unlike getrusage, without that of its parent."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not tell the peak memory")


if __name__ == "__main__":
    serve(Process())
