"""A TPC-B like mix of eight sessions of one process on few hot rows: its rate, and how many conflicts clients saw."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import seachange
from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample

SESSIONS = 8
BRANCHES = 1
TELLERS = 10
ACCOUNTS = 1_000
SEED = 1
# What a client would have to run again.
CONFLICTS = ("40001", "40P01")


def make_tables(folder: Path) -> None:
    with seachange.connect(data=folder) as db:
        for table, count in (("branches", BRANCHES), ("tellers", TELLERS), ("accounts", ACCOUNTS)):
            db.execute(f"create table {table} (id bigint primary key, balance bigint)")
            db.cursor().executemany(f"insert into {table} values (%s, 0)", [(i,) for i in range(count)])
        db.execute("create table history (account bigint, delta bigint)")


class Client(threading.Thread):
    """One session's share: transactions of four statements, each of which stands for itself or all in one block."""

    def __init__(self, folder: Path, number: int, blocks: bool, until: threading.Event) -> None:
        super().__init__()
        self._folder = folder
        self._random = random.Random(f"{SEED}-{number}")
        self._blocks = blocks
        self._until = until
        self.transactions = 0
        self.seen: Counter[str] = Counter()

    def run(self) -> None:
        db = seachange.connect(data=self._folder, autocommit=not self._blocks)
        while not self._until.is_set():
            try:
                self._transact(db)
                self.transactions += 1
            except db.Error as problem:
                self.seen[problem.sqlstate] += 1
                db.rollback()
        db.close()

    def _transact(self, db: seachange.Connection) -> None:
        delta = self._random.randint(-100, 100)
        account = self._random.randrange(ACCOUNTS)
        change = "update {} set balance = balance + %s where id = %s"
        db.execute(change.format("accounts"), (delta, account))
        db.execute(change.format("tellers"), (delta, self._random.randrange(TELLERS)))
        db.execute(change.format("branches"), (delta, self._random.randrange(BRANCHES)))
        db.execute("insert into history values (%s, %s)", (account, delta))
        if self._blocks:
            db.commit()


def window(folder: Path, seconds: float, blocks: bool) -> tuple[float, int]:
    """Transactions per second of all sessions together, and the conflicts that their clients saw."""
    make_tables(folder)
    until = threading.Event()
    clients = [Client(folder, n, blocks, until) for n in range(SESSIONS)]
    start = time.perf_counter()
    for client in clients:
        client.start()
    until.wait(seconds)
    until.set()
    for client in clients:
        client.join()
    elapsed = time.perf_counter() - start
    seen = sum((client.seen for client in clients), Counter[str]())
    unexpected = {state: n for state, n in seen.items() if state not in CONFLICTS}
    assert not unexpected, f"unexpected errors: {unexpected}"
    check_sums(folder)
    return sum(client.transactions for client in clients) / elapsed, sum(seen.values())


def check_sums(folder: Path) -> None:
    """A change that was lost, or made twice, would show."""
    with seachange.connect(data=folder) as db:
        total = db.execute("select coalesce(sum(delta), 0) from history").fetchone()
        for table in ("accounts", "tellers", "branches"):
            assert db.execute(f"select sum(balance) from {table}").fetchone() == total, f"{table} does not add up"


def hot_rows(context: Context) -> Iterable[Reading]:
    for name, blocks in (("autocommit", False), ("blocks", True)):
        windows = [
            window(context.folder(f"{name}/{n}"), context.scale.window_seconds, blocks)
            for n in range(context.scale.rounds)
        ]
        rates, conflicts = zip(*windows, strict=True)
        note = f"{SESSIONS} sessions, {BRANCHES} branch, seed {SEED}; four statements each"
        yield Reading(f"contention.{name}.transactions", "/s", Sample(rates), note=note)
        yield Reading(f"contention.{name}.conflicts", "", Sample(conflicts), note="seen by clients")


MEASURES = (Measure("contention", hot_rows, bounds_of("contention")),)
