"""A TPC-B like mix on few hot rows: the tables, and a client that writes to them in a closed loop."""

import random
import threading
from collections import Counter
from pathlib import Path

import seachange

BRANCHES = 1
TELLERS = 10
ACCOUNTS = 1_000
SEED = 1


def make_tables(folder: Path) -> None:
    with seachange.connect(data=folder) as db:
        for table, count in (("branches", BRANCHES), ("tellers", TELLERS), ("accounts", ACCOUNTS)):
            db.execute(f"create table {table} (id bigint primary key, balance bigint)")
            db.cursor().executemany(f"insert into {table} values (%s, 0)", [(i,) for i in range(count)])
        db.execute("create table history (account bigint, delta bigint)")


class Client(threading.Thread):
    """One session: transactions of four statements, each in autocommit or all in one block."""

    def __init__(self, folder: Path, number: int, blocks: bool, until: threading.Event) -> None:
        super().__init__()
        self._folder = folder
        self._random = random.Random(f"{SEED}-{number}")
        self._blocks = blocks
        self._until = until
        self.transactions = 0
        self.seen: Counter[str] = Counter()

    def connect(self) -> None:
        self._db = seachange.connect(data=self._folder, autocommit=not self._blocks)

    def run(self) -> None:
        db = self._db
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


def check_sums(folder: Path) -> None:
    """Raises if a change was lost or applied twice."""
    with seachange.connect(data=folder) as db:
        total = db.execute("select coalesce(sum(delta), 0) from history").fetchone()
        for table in ("accounts", "tellers", "branches"):
            assert db.execute(f"select sum(balance) from {table}").fetchone() == total, f"{table} does not add up"
