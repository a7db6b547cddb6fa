"""A client: random transactions over lists, accounts and items, at every isolation level, recorded as they run."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from soak.checker.model import Level, Outcome
from soak.connections import Connection, Opener, Refused
from soak.history import Recorder, now_us
from soak.schema import ACCOUNTS, EXTRA_COLUMNS, KEYS, KINDS_KEPT, KINDS_MAX, SLOT_BAD, SLOTS_SHARED, keys_of

# Ids and values of one client begin with its number.
SPAN = 1_000_000
LEVELS = (*[Level.READ_COMMITTED] * 2, Level.REPEATABLE_READ, Level.SERIALIZABLE)
SETTINGS = ("set lock_timeout = '5s'", "set statement_timeout = '30s'")
RETRY_SECONDS = 0.3
UPSERT = "insert into lists (id, v) values (%s, %s) on conflict (id) do update set v = lists.v || ',' || %s"
LOCKED = ("lists", "accounts", "items")
MODES = ("access share", "row exclusive", "share", "share row exclusive", "exclusive", "access exclusive")
COLUMNS = "id, round, code, qty, slot, kind, note, size"


@dataclass(frozen=True, slots=True)
class Pace:
    """When the run began, and how long a round of it takes."""

    start_us: int
    round_us: int

    @property
    def round(self) -> int:
        return max(0, now_us() - self.start_us) // self.round_us


@dataclass(slots=True)
class Client:
    opener: Opener
    number: int
    seed: int
    pace: Pace
    recorder: Recorder
    stop: threading.Event
    _count: int = 0
    _value: int = 0
    _round: int = -1
    # Own items of this round, as committed and as the open transaction has them: code and quantity.
    _items: dict[int, tuple[str, int]] = field(default_factory=dict)
    _pending: dict[int, tuple[str, int]] = field(default_factory=dict)
    _touched: set[int] = field(default_factory=set)
    _chance: random.Random = field(default_factory=random.Random)
    _connection: Connection | None = None
    _name: str = ""
    _steps: int = 0
    _commits: bool = False
    _where: str = ""

    def run(self) -> None:
        self._chance = random.Random(f"{self.seed} client {self.number}")
        self._value = self.number * SPAN
        while not self.stop.is_set():
            if self._connect():
                self._transact()
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> bool:
        if self._connection is not None and not self._connection.is_broken:
            return True
        try:
            self._connection = self.opener.open(self._chance)
            for setting in SETTINGS:
                self._connection.execute(setting)
        except Refused:
            self.stop.wait(RETRY_SECONDS)
            return False
        return True

    # Transactions.

    def _transact(self) -> None:
        if self.pace.round != self._round:
            self._round, self._items = self.pace.round, {}
        self._count += 1
        self._name = f"{self.recorder.client}.{self._count}"
        self._pending, self._touched, self._steps = dict(self._items), set(), 0
        in_block = self._chance.random() < 0.75
        level = self._chance.choice(LEVELS) if in_block else Level.READ_COMMITTED
        self.recorder.note("begin", transaction=self._name, level=level, round=self._round)
        self._where, self._commits = "begin", not in_block
        try:
            outcome = self._run_block(level) if in_block else self._run_alone()
            self.recorder.note("end", transaction=self._name, outcome=outcome, where=self._where)
            if outcome is Outcome.COMMITTED:
                self._items = self._pending
        except Refused as problem:
            self._fail(problem)

    def _fail(self, problem: Refused) -> None:
        unknown = problem.is_unknown and self._commits
        outcome = Outcome.UNKNOWN if unknown else Outcome.ABORTED
        details = {"sqlstate": problem.sqlstate, "message": str(problem), "where": self._where}
        if unknown:
            # Rows in an unknown state are not used any more.
            self._items = {id_: item for id_, item in self._items.items() if id_ not in self._touched}
        self._roll_back()
        self.recorder.note("end", transaction=self._name, outcome=outcome, **details)
        if problem.is_unknown:
            self.stop.wait(RETRY_SECONDS)

    def _roll_back(self) -> None:
        assert self._connection is not None
        if not self._connection.is_broken:
            try:
                self._connection.execute("rollback")
            except Refused:
                self._connection.close()
                self._connection = None

    def _run_block(self, level: Level) -> Outcome:
        chance = self._chance
        # A client whose think time exceeds the drain of a schema change.
        thinks = chance.random() < 0.3
        self._execute(f"begin isolation level {level}")
        for _ in range(chance.randint(1, 4)):
            self._step() if chance.random() < 0.9 else self._step_with_savepoint()
            if thinks:
                self.stop.wait(chance.uniform(0.1, 0.9))
        if chance.random() < 0.05:
            self._where = "rollback"
            self._execute("rollback")
            return Outcome.ABORTED
        self._where, self._commits = "commit", True
        self.recorder.note("commit", transaction=self._name)
        self._execute("commit")
        return Outcome.COMMITTED

    def _run_alone(self) -> Outcome:
        self._choose(ALONE)(self)
        return Outcome.COMMITTED

    def _step(self) -> None:
        self._choose(STEPS)(self)

    def _choose(self, table: tuple[tuple[Callable[[Client], None], float], ...]) -> Callable[[Client], None]:
        steps, weights = zip(*table, strict=True)
        step: Callable[[Client], None] = self._chance.choices(steps, weights)[0]
        self._where = step.__name__
        return step

    def _step_with_savepoint(self) -> None:
        pending, first = dict(self._pending), self._steps
        self._execute("savepoint s")
        self._step()
        if self._chance.random() < 0.5:
            self._execute("rollback to savepoint s")
            self.recorder.note("undo", transaction=self._name, first=first)
            self._pending = pending
        else:
            self._execute("release savepoint s")

    def _execute(self, sql: str, *values: Any) -> tuple[list[tuple[Any, ...]], int]:
        assert self._connection is not None
        return self._connection.execute(sql, *values)

    def _invoke(self, kind: str, **details: Any) -> None:
        self._steps += 1
        operation = {"kind": kind, **details}
        self.recorder.note("invoke", transaction=self._name, operation=operation, commits=self._commits)

    def _return(self, answer: Any) -> None:
        self.recorder.note("return", transaction=self._name, answer=answer)

    def _next_value(self) -> int:
        self._value += 1
        return self._value

    def _key(self) -> int:
        return self._chance.choice(keys_of(self._round))

    # Lists.

    def append(self) -> None:
        key, value = self._key(), self._next_value()
        self._invoke("append", key=key, value=value)
        if self._chance.random() < 0.5:
            rows, _ = self._execute(f"{UPSERT} returning v", key, str(value), str(value))
            self._return(_values(rows[0][0]))
        else:
            self._execute(UPSERT, key, str(value), str(value))
            self._return(None)

    def read(self) -> None:
        key = self._key()
        lock = "" if self._commits or self._chance.random() < 0.8 else " for update"
        self._invoke("read", keys=[key], lock=lock)
        rows, _ = self._execute(f"select v from lists where id = %s{lock}", key)
        self._return([[key, _values(rows[0][0]) if rows else []]])

    def scan(self) -> None:
        """All lists of the round in one statement: by the key, or in a form that no index supports."""
        keys = keys_of(self._round)
        column = self._chance.choice(("id", "id + 0"))
        self._invoke("read", keys=list(keys), by=column)
        rows, _ = self._execute(
            f"select id, v from lists where {column} >= %s and {column} < %s", keys.start, keys.start + KEYS
        )
        found = {id_: _values(text) for id_, text in rows}
        self._return([[key, found.get(key, [])] for key in keys])

    # Accounts.

    def transfer(self) -> None:
        payer, payee = self._chance.sample(range(ACCOUNTS), 2)
        amount, id_ = self._chance.randint(1, 20), self._next_value()
        self._invoke("transfer", id=id_, payer=payer, payee=payee, amount=amount)
        counts = [
            self._execute("update accounts set balance = balance - %s where id = %s", amount, payer)[1],
            self._execute("update accounts set balance = balance + %s where id = %s", amount, payee)[1],
            self._execute("insert into transfers values (%s, %s, %s, %s, %s)", id_, self._round, payer, payee, amount)[
                1
            ],
        ]
        self._return(counts)

    def total(self) -> None:
        self._invoke("total")
        rows, _ = self._execute("select sum(balance) from accounts")
        self._return(int(rows[0][0]))

    # Items.

    def insert_items(self) -> None:
        ids = [self._next_value() for _ in range(self._chance.randint(1, 4))]
        items = [(id_, f"Code {id_}.0", id_ % 100) for id_ in ids]
        self._touched |= set(ids)
        self._invoke("insert", items=items)
        rows = ", ".join(self._row(id_, code, qty) for id_, code, qty in items)
        _, count = self._execute(f"insert into items ({COLUMNS}) values {rows}")
        self._pending |= {id_: (code, qty) for id_, code, qty in items}
        self._return(count)

    def _row(self, id_: int, code: str, qty: int) -> str:
        chance = self._chance
        slot = id_
        if chance.random() < 0.01:
            slot = chance.choice((chance.randrange(SLOTS_SHARED), SLOT_BAD))
        kind = chance.randrange(KINDS_MAX if chance.random() < 0.02 else KINDS_KEPT)
        note = "null" if chance.random() < 0.01 else "'noted'"
        return f"({id_}, {self._round}, '{code}', {qty}, {slot}, {kind}, {note}, '{qty}')"

    def update_item(self) -> None:
        """By its id: a new code, which may be the primary key by now; or by its code."""
        for id_ in self._own():
            code, qty = self._pending[id_]
            change = (f"Code {id_}.{self._count}", (qty + 1) % 100)
            self._touched.add(id_)
            self._invoke("update", items=[[id_, *change]])
            condition, value = ("id = %s", id_) if self._chance.random() < 0.6 else ("code = %s", code)
            _, count = self._execute(
                f"update items set code = %s, qty = %s, size = '{change[1]}' where {condition}", *change, value
            )
            self._pending[id_] = change
            self._return(count)

    def delete_item(self) -> None:
        for id_ in self._own():
            self._touched.add(id_)
            self._invoke("delete", items=[[id_, None, None]])
            _, count = self._execute("delete from items where id = %s", id_)
            del self._pending[id_]
            self._return(count)

    def read_item(self) -> None:
        for id_ in self._own():
            code, qty = self._pending[id_]
            self._invoke("look", expected=[[id_, code, qty, str(qty)]])
            condition, value = ("id = %s", id_) if self._chance.random() < 0.5 else ("lower(code) = %s", code.lower())
            rows, _ = self._execute(f"select id, code, qty, size::text from items where {condition}", value)
            self._return([list(row) for row in rows])

    def set_extra(self) -> None:
        """A column that may not exist."""
        for id_ in self._own():
            self._invoke("extra", id=id_)
            column = self._chance.choice(EXTRA_COLUMNS)
            _, count = self._execute(f"update items set {column} = '5' where id = %s", id_)
            self._return(count)

    def change_kinds(self) -> None:
        kind = self._chance.randrange(KINDS_KEPT, KINDS_MAX)
        self._invoke("kinds")
        if self._chance.random() < 0.5:
            self._execute("insert into kinds values (%s, 'new') on conflict do nothing", kind)
        else:
            self._execute("delete from kinds where id = %s", kind)
        self._return(None)

    def lock_table(self) -> None:
        table, mode = self._chance.choice(LOCKED), self._chance.choice(MODES)
        self._invoke("lock", table=table, mode=mode)
        self._execute(f"lock table {table} in {mode} mode")
        self._return(None)

    def write_side(self) -> None:
        self._invoke("side")
        self._execute("insert into side values (%s, 1)", self._next_value())
        self._return(None)

    def _own(self) -> list[int]:
        return [self._chance.choice(sorted(self._pending))] if self._pending else []


def _values(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


STEPS: tuple[tuple[Callable[[Client], None], float], ...] = (
    (Client.append, 30),
    (Client.read, 18),
    (Client.scan, 8),
    (Client.transfer, 8),
    (Client.total, 4),
    (Client.insert_items, 14),
    (Client.update_item, 10),
    (Client.delete_item, 4),
    (Client.read_item, 8),
    (Client.set_extra, 1.5),
    (Client.change_kinds, 2),
    (Client.write_side, 2),
    (Client.lock_table, 1),
)
# Single statements, in autocommit mode.
ALONE: tuple[tuple[Callable[[Client], None], float], ...] = (
    (Client.append, 25),
    (Client.read, 15),
    (Client.scan, 10),
    (Client.total, 5),
    (Client.insert_items, 10),
    (Client.update_item, 8),
    (Client.delete_item, 3),
    (Client.read_item, 6),
)
