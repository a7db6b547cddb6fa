"""A writer: random transactions over its own rows and over shared ones.

It writes down what a transaction is going to do before it begins, and how it ended. What it reads of its own rows is
compared with what it knows of them on the way.
"""

import random
import threading
from collections.abc import Callable
from typing import Any

from seachange import errors
from seachange.engine.session.session import Session
from tests.cluster.load.log import Log
from tests.cluster.load.schema import (
    ACCOUNTS,
    COUNTERS,
    KINDS_KEPT,
    KINDS_MAX,
    SLOT_BAD,
    SLOTS_SHARED,
    TABLES,
    code_of,
    table_of,
)

# Ids and markers of one writer begin with its number.
SPAN = 1_000_000
BULK_ROWS = 6_000
COLUMNS = "id, code, qty, slot, kind, note, size"
ISOLATIONS = (*["read committed"] * 7, *["repeatable read"] * 2, "serializable")
# What becomes of a row: its code and quantity, or nothing.
Effect = tuple[int, str, int] | tuple[int, None, None]


class Writer:
    def __init__(self, session: Session, number: int, seed: int, log: Log, stop: threading.Event) -> None:
        self._session = session
        self._first = number * SPAN
        self._marker = self._first
        self._next_id = self._next_slot = self._first
        self._chance = random.Random(f"{seed} {number}")
        self._log = log
        self._stop = stop
        # The rows that are committed, and as the open transaction has made them.
        self._rows: dict[int, tuple[str, int]] = {}
        self._pending: dict[int, tuple[str, int]] = {}
        self._increments: dict[int, int] = {}

    def run(self) -> None:
        while not self._stop.is_set():
            self._transact()

    # Transactions.

    def _transact(self) -> None:
        self._marker += 1
        self._pending, self._increments, self._doubts = dict(self._rows), {}, list[str]()
        self._log.note("begin", marker=self._marker)
        self._place = "BEGIN"
        try:
            self._run_block() if self._chance.random() < 0.7 else self._run_alone()
        except errors.Error as problem:
            self._session.rollback()
            details = {"sqlstate": problem.sqlstate, "message": str(problem), "place": self._place}
            self._log.note("refused", marker=self._marker, **details)
        else:
            self._log.note("committed", marker=self._marker)
            self._rows = self._pending
            for doubt in self._doubts:
                self._log.note("wrong", marker=self._marker, message=doubt)

    def _run_block(self) -> None:
        chance = self._chance
        is_long = chance.random() < 0.06
        self._execute(f"begin isolation level {chance.choice(ISOLATIONS)}")
        self._execute("insert into journal values ($1)", self._marker)
        for _ in range(chance.randint(1, 4)):
            if is_long:
                # A client that thinks.
                self._stop.wait(chance.uniform(0.1, 1.0))
            self._step() if chance.random() < 0.8 else self._step_with_savepoint()
        if chance.random() < 0.04:
            self._execute("rollback")
            raise _given_up()
        self._announce()
        self._place = "COMMIT"
        self._execute("commit")

    def _run_alone(self) -> None:
        """One statement with all its effects, the row in the journal too."""
        id_ = self._new_id()
        change = self._marker % SPAN
        self._pending[id_] = (code_of(id_, change), change)
        self._announce()
        row = self._row(id_, change, change)
        self._session.execute_all(
            f"insert into journal values ({self._marker}); insert into {table_of(id_)} ({COLUMNS}) values {row}"
        )

    def _announce(self) -> None:
        """What the transaction does if it commits."""
        changed = {id_ for id_ in {*self._rows, *self._pending} if self._rows.get(id_) != self._pending.get(id_)}
        effects = [[id_, *self._pending.get(id_, (None, None))] for id_ in sorted(changed)]
        self._log.note("commits", marker=self._marker, effects=effects, increments=self._increments)

    def _step_with_savepoint(self) -> None:
        pending, increments = dict(self._pending), dict(self._increments)
        self._execute("savepoint s")
        try:
            self._step()
            back = self._chance.random() < 0.4
        except errors.IntegrityError as problem:
            self._log.note("forgiven", sqlstate=problem.sqlstate, message=str(problem), place=self._place)
            back = True
        if back:
            self._execute("rollback to savepoint s")
            self._pending, self._increments = pending, increments
        else:
            self._execute("release savepoint s")

    def _step(self) -> None:
        steps, weights = zip(*STEPS, strict=True)
        step: Callable[[Writer], None] = self._chance.choices(steps, weights)[0]
        self._place = step.__name__
        step(self)

    def _execute(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return list(self._session.execute(sql, values).rows)

    def _count(self, sql: str, *values: Any) -> int:
        return int(self._session.execute(sql, values).count)

    # Values.

    def _next_of(self, id_: int) -> int:
        """Another id of the same table."""
        while table_of(self._new_id()) != table_of(id_):
            pass
        return self._next_id

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _row(self, id_: int, change: int, qty: int) -> str:
        values = (id_, f"'{code_of(id_, change)}'", qty, self._slot(), self._kind(), self._note(), f"'{change}'")
        return f"({', '.join(map(str, values))})"

    def _new_slot(self) -> int:
        self._next_slot += 1
        return self._next_slot

    def _slot(self) -> int:
        """Mostly good, and one of its own."""
        if self._chance.random() < 0.004:
            return self._chance.choice((self._chance.randrange(SLOTS_SHARED), SLOT_BAD))
        return self._new_slot()

    def _kind(self) -> int:
        return self._chance.randrange(KINDS_MAX if self._chance.random() < 0.02 else KINDS_KEPT)

    def _note(self) -> str:
        return "null" if self._chance.random() < 0.01 else "'noted'"

    def _own(self, count: int) -> list[int]:
        return self._chance.sample(sorted(self._pending), min(count, len(self._pending)))

    # Steps.

    def insert(self) -> None:
        first = self._new_id()
        ids = [first, *(self._next_of(first) for _ in range(self._chance.randrange(5)))]
        rows = ", ".join(self._row(i, 0, i % 100) for i in ids)
        self._expect(len(ids), self._count(f"insert into {table_of(first)} ({COLUMNS}) values {rows}"))
        self._pending |= {i: (code_of(i, 0), i % 100) for i in ids}

    def load(self) -> None:
        first = self._new_id()
        self._next_id = last = first + len(TABLES) * (BULK_ROWS - 1)
        done = self._count(
            f"insert into {table_of(first)} ({COLUMNS}) select i, 'code ' || i || '.0', i % 100, "
            f"i + {SPAN // 2}, i % {KINDS_KEPT}, 'loaded', 0 "
            f"from generate_series({first}, {last}, {len(TABLES)}) g(i)"
        )
        self._expect(BULK_ROWS, done)
        self._pending |= {i: (code_of(i, 0), i % 100) for i in range(first, last + 1, len(TABLES))}

    def update(self) -> None:
        """By key: a new code, which may be the primary key by now."""
        for id_ in self._own(2):
            change = self._marker % SPAN
            code = code_of(id_, change)
            done = self._count(
                f"update {table_of(id_)} set code = $1, qty = $2, size = '{change}' where id = $3", code, change, id_
            )
            self._expect(1, done)
            self._pending[id_] = (code, change)

    def update_some(self) -> None:
        """By a condition, through an index where there is one."""
        for id_ in self._own(1):
            code, qty = self._pending[id_]
            sql = f"update {table_of(id_)} set qty = qty + 1, note = 'again' where code = $1"
            self._expect(1, self._count(sql, code))
            self._pending[id_] = (code, qty + 1)

    def delete(self) -> None:
        chosen = self._own(self._chance.randint(1, 3))
        ids = [id_ for id_ in chosen if table_of(id_) == table_of(chosen[0])]
        if ids:
            listed = ", ".join(map(str, ids))
            self._expect(len(ids), self._count(f"delete from {table_of(ids[0])} where id in ({listed})"))
            for id_ in ids:
                del self._pending[id_]

    def upsert(self) -> None:
        key = self._chance.randrange(COUNTERS)
        self._execute(
            "insert into counter values ($1, 1) on conflict (id) do update set n = counter.n + 1 returning n", key
        )
        self._increments[key] = self._increments.get(key, 0) + 1

    def transfer(self) -> None:
        payer, payee = self._chance.sample(range(ACCOUNTS), 2)
        amount = self._chance.randint(1, 20)
        self._expect(1, self._count("update account set balance = balance - $1 where id = $2", amount, payer))
        self._expect(1, self._count("update account set balance = balance + $1 where id = $2", amount, payee))

    def scratch(self) -> None:
        self._execute("insert into scratch values ($1, $2)", self._marker, self._chance.randrange(100))

    def change_kinds(self) -> None:
        kind = self._chance.randrange(KINDS_KEPT, KINDS_MAX)
        if self._chance.random() < 0.5:
            self._execute("insert into kind values ($1, 'new') on conflict do nothing", kind)
        else:
            self._execute("delete from kind where id = $1", kind)

    def set_extra(self) -> None:
        """A column that may not be there, or no longer."""
        column = f"x{self._chance.randrange(4)}"
        for id_ in self._own(1):
            self._expect(1, self._count(f"update {table_of(id_)} set {column} = '5' where id = $1", id_))

    def read(self) -> None:
        """By id, by code and as a whole: the same rows each time."""
        for id_ in self._own(2):
            code, qty = self._pending[id_]
            table = table_of(id_)
            found = self._execute(f"select code, qty, size::text from {table} where id = $1", id_)
            self._expect([(code, qty, code.partition(".")[2])], found)
            self._expect([(id_,)], self._execute(f"select id from {table} where code = $1", code))
        if self._chance.random() < 0.2:
            self._read_all(self._chance.choice(TABLES))

    def _read_all(self, table: str) -> None:
        sql = f"select count(*), sum(qty)::bigint from {table} where id between $1 and $2"
        held = self._execute(sql, self._first, self._first + SPAN - 1)
        known = [qty for id_, (_, qty) in self._pending.items() if table_of(id_) == table]
        self._expect([(len(known), sum(known) if known else None)], held)

    def read_sum(self) -> None:
        self._expect([(ACCOUNTS * 1_000,)], self._execute("select sum(balance)::bigint from account"))

    def _expect(self, wanted: Any, found: Any) -> None:
        """Who has written what another has changed since may see a mixture, at READ COMMITTED; it cannot commit."""
        if wanted != found:
            self._doubts.append(f"{self._place}: {found} instead of {wanted}, isolation {self._isolation()}")

    def _isolation(self) -> str:
        return str(self._session.settings.get("transaction_isolation"))


def _given_up() -> errors.Error:
    return errors.QueryCanceled(reason="a change of mind")


STEPS: tuple[tuple[Callable[[Writer], None], float], ...] = (
    (Writer.insert, 20),
    (Writer.load, 0.4),
    (Writer.update, 15),
    (Writer.update_some, 8),
    (Writer.delete, 8),
    (Writer.upsert, 8),
    (Writer.transfer, 10),
    (Writer.scratch, 4),
    (Writer.change_kinds, 3),
    (Writer.set_extra, 1.5),
    (Writer.read, 15),
    (Writer.read_sum, 4),
)
