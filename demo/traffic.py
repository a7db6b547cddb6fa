"""One process of traffic: transfers, look-ups, new accounts and closed ones, at a fixed rate until it is stopped.

Latencies count from the moment at which a transaction was due, so that one that stood in line behind a lock is seen to
have waited. A line of JSON per transaction goes to standard output.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import sys
import time
from collections.abc import Callable
from typing import Any

from demo.story import TRAFFIC_IDS_FROM

RETRIES = 5
# Transactions that met each other; run again, one after the other, they succeed.
CONFLICTS = frozenset({"40001", "40P01"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--data", help="the folder of a Seachange database, embedded in this process")
    parser.add_argument("--catalog", help="its catalog, if it is not in the folder")
    parser.add_argument("--local", help="the local folder of a database in an object store")
    target.add_argument("--postgresql", help="the address of a PostgreSQL server")
    parser.add_argument("--number", type=int, required=True, help="of this process")
    parser.add_argument("--accounts", type=int, required=True, help="how many were loaded")
    parser.add_argument("--rate", type=int, required=True, help="transactions a second")
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    connection = connect(options)
    Traffic(connection, options.number, options.accounts, random.Random(f"{options.seed}-{options.number}")).run(
        options.rate
    )
    connection.close()
    return 0


def connect(options: argparse.Namespace) -> Any:
    """Both systems are used through a DB-API connection."""
    if options.data is not None:
        import seachange  # noqa: PLC0415 - only one of the two is needed

        return seachange.connect(options.data, options.catalog, local=options.local)
    import psycopg  # noqa: PLC0415

    return psycopg.connect(options.postgresql or "")


class Traffic:
    def __init__(self, connection: Any, number: int, accounts: int, chance: random.Random) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._number = number
        self._accounts = accounts
        self._chance = chance
        self._count = 0
        # Accounts that this process opened; those of the current transaction are told apart.
        self._mine: list[int] = []
        self._opened: int | None = None
        self._closed: int | None = None

    def run(self, rate: int) -> None:
        self._one(self._look_up, time.monotonic(), shown=False)
        print("ready", flush=True)
        due = time.monotonic()
        while not self._told_to_stop(due):
            kinds = (self._transfer, self._look_up, self._open, self._close)
            (kind,) = self._chance.choices(kinds, weights=(5, 3, 1, 1))
            self._one(kind, due)
            due += 1 / rate

    def _told_to_stop(self, due: float) -> bool:
        """Waits until the next transaction is due; returns whether to stop."""
        return bool(select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0])

    def _one(self, kind: Callable[[], None], due: float, shown: bool = True) -> None:
        """Runs one transaction and retries it after a conflict; its notes count once it has committed."""
        self._count += 1
        state = self._chance.getstate()
        retries = 0
        while True:
            error = None
            self._opened, self._closed = None, None
            try:
                kind()
                self._connection.commit()
                self._note()
            except Exception as problem:  # noqa: BLE001 - of either driver; it is counted and shown
                self._connection.rollback()
                error = f"{getattr(problem, 'sqlstate', None)}: {problem}"
                if getattr(problem, "sqlstate", None) in CONFLICTS and retries < RETRIES:
                    retries += 1
                    self._chance.setstate(state)
                    continue
            break
        if shown:
            now = time.monotonic()
            name = kind.__name__.strip("_")
            print(json.dumps({"at": now, "ms": 1e3 * (now - due), "kind": name, "retries": retries, "error": error}))
            sys.stdout.flush()

    def _note(self) -> None:
        if self._opened is not None:
            self._mine.append(self._opened)
        if self._closed is not None:
            self._mine.remove(self._closed)

    def _transfer(self) -> None:
        source, target = self._chance.sample(range(self._accounts), 2)
        amount = self._chance.randrange(1, 10)
        # In the order of keys, so that two transfers never wait for each other in a circle.
        for account, change in sorted([(source, -amount), (target, amount)]):
            self._cursor.execute("update accounts set balance = balance + %s where id = %s", (change, account))
        self._cursor.execute(
            "insert into ledger (id, source, target, amount) values (%s, %s, %s, %s)",
            (f"{self._number}-{self._count}", source, target, amount),
        )

    def _look_up(self) -> None:
        account = self._chance.randrange(self._accounts)
        self._cursor.execute("select owner, balance from accounts where id = %s", (account,))
        if len(self._cursor.fetchall()) != 1:
            raise LookupError(f"account {account} is not there")

    def _open(self) -> None:
        account = TRAFFIC_IDS_FROM * (self._number + 1) + self._count
        self._cursor.execute(
            "insert into accounts (id, owner, iban, email, balance, opened) values (%s, %s, %s, %s, 0, '2026-11-16')",
            (account, f"owner {account}", f"FR{account}", f"user{account}@example.org"),
        )
        self._opened = account

    def _close(self) -> None:
        if not self._mine:
            return
        account = self._closed = self._mine[0]
        self._cursor.execute("delete from accounts where id = %s", (account,))
        if self._cursor.rowcount != 1:
            raise LookupError(f"account {account} is not there")


if __name__ == "__main__":
    sys.exit(main())
