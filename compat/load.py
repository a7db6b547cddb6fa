"""Writers that go on while a migration tool changes their tables, and what these tables contain afterwards.

Runs in the environments of the clients: uses psycopg and the standard library only.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter
from typing import Any

import psycopg

from compat.features import expect

CUSTOMERS, PURCHASES = 40, 2_000
WRITERS = 2
# Enough to know that a writer is at work.
_TRANSACTIONS_MIN = 5
_SECONDS_MAX = 60
_FILL = (
    "truncate purchase, customer",
    f"insert into customer (id, visits) select n, 0 from generate_series(1, {CUSTOMERS}) s(n)",
    "insert into purchase (id, customer_id, code, amount)"
    f" select n, n % {CUSTOMERS} + 1, 'code ' || n, n from generate_series(1, {PURCHASES}) s(n)",
)
_COLUMNS = (
    "select table_name, column_name, data_type, is_nullable, column_default"
    " from information_schema.columns where table_name in ('customer', 'purchase') order by 1, ordinal_position"
)
_KEYS = (
    "select indexname, indexdef from pg_indexes where tablename in ('customer', 'purchase') order by 1",
    "select conname, pg_get_constraintdef(oid) from pg_constraint"
    " where conrelid in ('customer'::regclass, 'purchase'::regclass) order by 1",
)
Row = tuple[Any, ...]


class Writer(Thread):
    """Inserts purchases and updates older ones and customers, in transactions; an error ends it."""

    def __init__(self, url: str, number: int) -> None:
        super().__init__(name=f"writer {number}", daemon=True)
        self._url = url
        self._number = number
        self._random = random.Random(number)
        self._stopping, self._worked = Event(), Event()
        self.problem: Exception | None = None
        # What has been committed.
        self.inserted: list[tuple[int, int, str, int]] = []
        self.raised: Counter[int] = Counter()
        self.visited: Counter[int] = Counter()
        self.seconds_max = 0.0

    def run(self) -> None:
        try:
            with psycopg.connect(self._url) as connection:
                while not self._stopping.is_set():
                    self._buy(connection)
                    self._worked.set()
        except Exception as problem:  # noqa: BLE001 - reported by the thread that waits for this one
            self.problem = problem
            self._worked.set()

    def _buy(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        # The same order of tables as in the migrations: with another one PostgreSQL finds deadlocks.
        key = self._number * 1_000_000 + len(self.inserted)
        row = (key, self._random.randint(1, CUSTOMERS), f"code {key}", self._random.randint(1, 9_999))
        older = self._random.randint(1, PURCHASES)
        started = perf_counter()
        with connection.transaction():
            connection.execute("insert into purchase (id, customer_id, code, amount) values (%s, %s, %s, %s)", row)
            connection.execute("update purchase set amount = amount + 1 where id = %s", (older,))
            connection.execute("update customer set visits = visits + 1 where id = %s", (row[1],))
        self.seconds_max = max(self.seconds_max, perf_counter() - started)
        self.inserted.append(row)
        self.raised[older] += 1
        self.visited[row[1]] += 1

    def wait_for_work(self) -> None:
        """Returns after some more transactions, or when the writer has failed."""
        for _ in range(_TRANSACTIONS_MIN):
            self._worked.clear()
            if self.problem is not None or not self._worked.wait(_SECONDS_MAX):
                return

    def stop(self) -> None:
        self._stopping.set()
        self.join(_SECONDS_MAX)


@contextmanager
def _writers(url: str) -> Iterator[None]:
    """Tables with rows and writers: no transaction of a writer fails inside, before or after, and no write is lost."""
    with psycopg.connect(url) as connection:
        for statement in _FILL:
            connection.execute(statement.encode())
    writers = [Writer(url, number) for number in range(1, WRITERS + 1)]
    for writer in writers:
        writer.start()
    try:
        for writer in writers:
            writer.wait_for_work()
        yield
        for writer in writers:
            writer.wait_for_work()
    finally:
        for writer in writers:
            writer.stop()
    for writer in writers:
        done = f"{len(writer.inserted)} transactions, the longest took {writer.seconds_max:.2f} s"
        print(f"{writer.name}: {done}", file=sys.stderr)
        expect((writer.is_alive(), writer.problem), (False, None))
    _expect_rows(url, writers)


def _expect_rows(url: str, writers: list[Writer]) -> None:
    inserted = [row for writer in writers for row in writer.inserted]
    raised: Counter[int] = sum((writer.raised for writer in writers), Counter())
    visited: Counter[int] = sum((writer.visited for writer in writers), Counter())
    older = [(n, n % CUSTOMERS + 1, f"code {n}", n + raised[n]) for n in range(1, PURCHASES + 1)]
    _expect_same(_ask(url, "select id, customer_id, code, amount::int from purchase"), [*older, *inserted])
    _expect_same(_ask(url, "select id, visits from customer"), [(n, visited[n]) for n in range(1, CUSTOMERS + 1)])


def _expect_same(found: Sequence[Row], wanted: Sequence[Row]) -> None:
    """Shows a few rows that differ, not all of them."""
    missing, surplus = set(wanted) - set(found), set(found) - set(wanted)
    expect((len(found), sorted(surplus)[:3], sorted(missing)[:3]), (len(wanted), [], []))


def _ask(url: str, query: str) -> list[Row]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


def expect_migrated(url: str, migrate: Callable[[], object]) -> None:
    """Every client's migration is the same one, in its own words."""
    with _writers(url):
        migrate()
    columns = {(table, column): rest for table, column, *rest in _ask(url, _COLUMNS)}
    expect(columns["purchase", "region"][:2], ["character varying", "NO"])
    expect(columns["purchase", "amount"][:2], ["numeric", "NO"])
    expect(columns["customer", "level"][:2], ["integer", "NO"])
    older = "select region, count(*) from purchase where id <= %d group by 1 order by 1"
    expect(_ask(url, older % PURCHASES), [("eu", PURCHASES // 2), ("us", PURCHASES // 2)])
    expect(_ask(url, "select count(*) from customer where level <> id % 3"), [(0,)])
    for refused in (
        "insert into purchase (id, customer_id, code, amount) values (-1, 1, 'code 1', 1)",
        "insert into purchase (id, customer_id, code, amount) values (-1, -1, 'code -1', 1)",
        "update purchase set region = null where id = 1",
    ):
        _expect_refused(url, refused)


def _expect_refused(url: str, statement: str) -> None:
    try:
        with psycopg.connect(url) as connection:
            connection.execute(statement.encode())
    except psycopg.IntegrityError:
        return
    raise AssertionError(f"accepted: {statement}")


def expect_nothing_left(url: str, migrate: Callable[[], object], error: type[Exception]) -> None:
    """A migration that fails at its last step leaves tables and rows as they were."""
    before = _describe(url)
    with _writers(url):
        try:
            migrate()
        except error as problem:
            print(problem, file=sys.stderr)
        else:
            raise AssertionError("the migration does not fail")
    expect(_describe(url), before)


def _describe(url: str) -> list[list[Row]]:
    return [_ask(url, query) for query in (_COLUMNS, *_KEYS)]
