"""A process that runs seeded random list-append transactions in several sessions of one node, and prints its history.

Started with one JSON argument, see `Orders`.
"""

import json
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from seachange import errors
from seachange.engine.node import Node
from seachange.engine.opening import open_node
from seachange.engine.session import Session
from seachange.model.ids import Epoch
from seachange.model.log import CommitRequest, Outcome
from tests.isolation.history import Append, Operation, Read, Status, Transaction

CREATE = "CREATE TABLE lists (id bigint PRIMARY KEY, v text)"
_READ = "SELECT v FROM lists WHERE id = $1"
_SCAN = "SELECT id, v FROM lists WHERE id <= $1"
_EXTEND = "UPDATE lists SET v = v || $2 WHERE id = $1"
_START = "INSERT INTO lists VALUES ($1, $2)"
# How a transaction may fail: as a conflict, as the victim of a deadlock, or as the second to start a list.
_EXPECTED = ("40001", "40P01", "23505")


@dataclass(frozen=True, slots=True)
class Orders:
    data: str
    catalog: str | None
    level: str
    name: str
    seed: int
    sessions: int
    transactions: int
    keys: int
    careless: bool = False


class CarelessCatalog:
    """A catalog whose commits do not say what they wrote or read: nothing conflicts between nodes."""

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit(self, epoch: Epoch, requests: Sequence[CommitRequest]) -> tuple[Outcome, ...]:
        silent = [replace(request, writes=(), shares=(), bulk=()) for request in requests]
        outcomes: tuple[Outcome, ...] = self._catalog.commit(epoch, silent)
        return outcomes


def open_appender(orders: Orders) -> Node:
    node = open_node(Path(orders.data), orders.catalog, name=orders.name)
    if not orders.careless:
        return node
    parts: Any = node.parts
    careless = Node(replace(parts, catalog=CarelessCatalog(parts.catalog)), f"{orders.name}-careless")
    careless.keeper.paused = True
    return careless


class Appender:
    """One session's share of the work."""

    def __init__(self, node: Node, orders: Orders, number: int) -> None:
        self._session = Session(node)
        self._orders = orders
        self._name = f"{orders.name}.{number}"
        self._random = random.Random(f"{orders.seed}-{self._name}")
        self._values = iter(range(int(f"{orders.name}{number}") * 1_000_000, 10**12))

    def run(self) -> list[Transaction]:
        try:
            return [self._run_one(f"{self._name}.{i}") for i in range(self._orders.transactions)]
        finally:
            self._session.close()

    def _run_one(self, name: str) -> Transaction:
        operations: list[Operation] = []
        self._session.execute(f"BEGIN ISOLATION LEVEL {self._orders.level}")
        try:
            for _ in range(self._random.randint(1, 4)):
                self._operate(operations)
            if self._random.random() < 0.1:
                self._session.rollback()
                return Transaction(name, Status.ABORTED, tuple(operations))
            self._session.commit()
        except errors.Error as problem:
            self._session.rollback()
            if problem.sqlstate not in _EXPECTED:
                raise
            return Transaction(name, Status.ABORTED, tuple(operations))
        return Transaction(name, Status.COMMITTED, tuple(operations))

    def _operate(self, operations: list[Operation]) -> None:
        key = self._random.randint(1, self._orders.keys)
        kind = self._random.random()
        if kind < 0.5:
            # Written down first: a value may be seen although its transaction failed.
            operations.append(Append(key, next(self._values)))
            self._append(operations[-1])
        elif kind < 0.8:
            operations.append(Read(key, _values(self._session.execute(_READ, (key,)).rows)))
        else:
            found: dict[int, str] = dict(self._session.execute(_SCAN, (key,)).rows)
            operations += [Read(k, _values([(found[k],)] if k in found else [])) for k in range(1, key + 1)]

    def _append(self, operation: Operation) -> None:
        assert isinstance(operation, Append)
        if not self._session.execute(_EXTEND, (operation.key, f",{operation.value}")).count:
            self._session.execute(_START, (operation.key, str(operation.value)))


def _values(rows: Sequence[Sequence[Any]]) -> tuple[int, ...]:
    return tuple(map(int, rows[0][0].split(","))) if rows else ()


def read_all(session: Session, keys: int) -> Transaction:
    """The last transaction of a history."""
    found: dict[int, str] = dict(session.execute(_SCAN, (keys,)).rows)
    reads = tuple(Read(k, _values([(found[k],)] if k in found else [])) for k in range(1, keys + 1))
    return Transaction("end", Status.COMMITTED, reads)


def encode(history: Sequence[Transaction]) -> str:
    return json.dumps([asdict(transaction) for transaction in history])


def decode(text: str) -> list[Transaction]:
    return [
        Transaction(
            t["name"],
            Status(t["status"]),
            tuple(Append(**o) if "value" in o else Read(o["key"], tuple(o["values"])) for o in t["operations"]),
        )
        for t in json.loads(text)
    ]


def main() -> None:
    orders = Orders(**json.loads(sys.argv[1]))
    node = open_appender(orders)
    try:
        workers = [Appender(node, orders, n) for n in range(orders.sessions)]
        print("ready", flush=True)
        sys.stdin.readline()
        with ThreadPoolExecutor(len(workers)) as pool:
            histories = list(pool.map(Appender.run, workers))
        print(encode([t for history in histories for t in history]), flush=True)
    finally:
        node.close()


if __name__ == "__main__":
    main()
