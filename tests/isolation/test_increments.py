"""Random blocks of two nodes that add to counters while they, and others, change the shape of the table: what was
committed is counted, and nothing else."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check

# The classes of errors that no statement of these may meet.
_OURS = ("XX", "58")
ROWS = range(1, 5)
STEPS = 40
CHANGES = (
    "alter table t alter n type bigint using n * 1",
    "alter table t alter n type int using n * 1",
    "alter table t alter n type numeric using n",
    "alter table t alter primary key using columns (id)",
    "alter table t alter primary key using columns (code)",
    "alter table t add column c int default 1",
    "alter table t add column c serial",
    "alter table t add column c int generated always as (id * 2) stored",
    "alter table t drop column c",
    "create index i on t (n)",
    "drop index i",
    "create unique index u on t (code, n)",
    "drop index u",
    "alter table t add constraint k check (n >= 0)",
    "alter table t drop constraint k",
    "alter table t rename column other to label",
    "alter table t rename column label to other",
)
INCREMENTS = (
    "update t set n = n + 1 where id = {row}",
    "update t set n = n + 1 where id = {row} returning n",
    "update t set n = n + 1 where code = {row} * 10",
    "insert into t (id, code, n) values ({row}, {row} * 10, 0) on conflict (id) do update set n = t.n + 1",
)
EVERY = "update t set n = n + 1"
QUERIES = ("select n from t where id = {row}", "select n from t where id = {row} for update", "select * from t")


class Client:
    """One session, and what it has added since its block and its savepoint began."""

    def __init__(self, node: Node, total: Counter[int]) -> None:
        self.session = Session(node)
        self.session.execute("set lock_timeout = '30ms'; set seachange.drain_timeout = '1ms'")
        self._total = total
        self._added: list[int] = []
        self._saved: int | None = None
        self._in_block = False

    def step(self, rng: random.Random) -> str:
        statement, rows = self._choose(rng)
        try:
            result = self.session.execute(statement)
        except errors.Error as error:
            if error.sqlstate[:2] in _OURS:
                raise
            self._end("rollback")
            return f"{statement}   -- {error}"
        assert not rows or result.count == len(rows), f"{result.count} of {len(rows)} rows: {statement}"
        self._note(statement, rows)
        return statement

    def _choose(self, rng: random.Random) -> tuple[str, list[int]]:
        if not self._in_block:
            return "begin" if rng.random() < 0.8 else "begin isolation level repeatable read", []
        chance, row = rng.random(), rng.choice(ROWS)
        if chance < 0.15:
            return rng.choice(["commit", "commit", "commit", "rollback"]), []
        if chance < 0.25:
            return "savepoint s" if self._saved is None else rng.choice(["savepoint s", "rollback to s"]), []
        if chance < 0.5:
            return rng.choice(CHANGES), []
        if chance < 0.65:
            return rng.choice(QUERIES).format(row=row), []
        if chance < 0.72:
            return EVERY, list(ROWS)
        return rng.choice(INCREMENTS).format(row=row), [row]

    def _note(self, statement: str, rows: list[int]) -> None:
        self._added += rows
        if statement.startswith("begin"):
            self._in_block = True
        elif statement == "savepoint s":
            self._saved = len(self._added)
        elif statement == "rollback to s":
            del self._added[self._saved :]
        elif statement in ("commit", "rollback"):
            self._total.update(self._added if statement == "commit" else [])
            self._added, self._saved, self._in_block = [], None, False

    def _end(self, statement: str) -> None:
        self.session.execute(statement)
        self._note(statement, [])


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(closing(open_node(tmp_path / "db", name=name))) for name in ("one", "two"))
        yield first, second


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 300))])
def test_every_committed_increment_is_there_once(seed: int, nodes: tuple[Node, Node]) -> None:
    rng, total, said = random.Random(seed), Counter(dict.fromkeys(ROWS, 0)), []
    first, second = nodes
    with ExitStack() as stack:
        owner = stack.enter_context(closing(Session(first)))
        owner.execute("create table t (id int primary key, code int not null, n int not null, other text)")
        owner.execute("insert into t select i, i * 10, 0 from generate_series(1, 4) g(i)")
        clients = [Client(node, total) for node in (first, first, second)]
        for client in clients:
            stack.enter_context(closing(client.session))
        for _ in range(STEPS):
            number = rng.randrange(len(clients))
            said.append(f"{number}: {clients[number].step(rng)}")
        for client in clients:
            client.session.rollback()
        found = {int(row): int(n) for row, n in owner.execute("select id, n from t").rows}
    assert found == total, "\n".join(said)
    assert check(first) == [], "\n".join(said)
