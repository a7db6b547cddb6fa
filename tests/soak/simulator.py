"""A database of lists that is right by construction: one log of commits, snapshots of it, and the rules of each level.

It runs the steps of several clients one at a time, in an order that a seed decides, and records them as the soak does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from soak.checker.model import Append, Level, Operation, Outcome, Read, Statement, Transaction

Lists = dict[int, tuple[int, ...]]


@dataclass(slots=True)
class Simulated:
    """An open transaction."""

    name: str
    level: Level
    began: int
    snapshot: int
    statements: list[Statement] = field(default_factory=list)
    own: dict[int, list[int]] = field(default_factory=dict)
    # What its writes and, at SERIALIZABLE, its reads rest on: the position in the log by key.
    rests_on: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Simulator:
    chance: random.Random
    keys: int = 3
    # Takes a rule away: "lost updates", "frozen", "dirty", "skew".
    without: str = ""
    time: int = 0
    log: list[Lists] = field(default_factory=lambda: [{}])
    written: list[frozenset[int]] = field(default_factory=lambda: [frozenset()])
    history: list[Transaction] = field(default_factory=list)
    _values: int = 0

    def run(self, transactions: int, clients: int) -> list[Transaction]:
        open_: dict[int, Simulated] = {}
        begun = 0
        while begun < transactions or open_:
            client = self.chance.randrange(clients)
            if client in open_:
                if self._go_on(open_[client]):
                    del open_[client]
            elif begun < transactions:
                begun += 1
                level = self.chance.choice(list(Level))
                open_[client] = Simulated(f"t{begun}", level, self._tick(), len(self.log) - 1)
        reads = tuple(Read(key, self.log[-1].get(key, ())) for key in range(self.keys))
        statement = Statement(reads, self._tick(), self._tick())
        last = Transaction(
            "end", Level.REPEATABLE_READ, Outcome.COMMITTED, (statement,), self.time, self.time, self.time
        )
        return [*self.history, last]

    def _tick(self) -> int:
        self.time += 1
        return self.time

    def _go_on(self, txn: Simulated) -> bool:
        """Whether it has ended."""
        if len(txn.statements) < 4 and self.chance.random() < 0.75:
            self._run_statement(txn)
            return False
        self._finish(txn)
        return True

    def _run_statement(self, txn: Simulated) -> None:
        began = self._tick()
        if txn.level is Level.READ_COMMITTED and self.without != "frozen":
            txn.snapshot = len(self.log) - 1
        operations: list[Operation] = []
        key = self.chance.randrange(self.keys)
        if self.chance.random() < 0.5:
            self._values += 1
            txn.own.setdefault(key, []).append(self._values)
            txn.rests_on.setdefault(key, txn.snapshot)
            operations.append(Append(key, self._values))
        else:
            for read in range(self.keys) if self.chance.random() < 0.3 else (key,):
                operations.append(Read(read, (*self.log[txn.snapshot].get(read, ()), *txn.own.get(read, ()))))
                if txn.level is Level.SERIALIZABLE and self.without != "skew":
                    txn.rests_on.setdefault(read, txn.snapshot)
        txn.statements.append(Statement(tuple(operations), began, self._tick()))

    def _finish(self, txn: Simulated) -> None:
        sent = self._tick()
        conflict = txn.own and any(
            key in self.written[position]
            for key, seen in txn.rests_on.items()
            for position in range(seen + 1, len(self.log))
        )
        gives_up = self.chance.random() < 0.1
        aborted = gives_up or (conflict and self.without != "lost updates")
        if txn.own and (not aborted or self.without == "dirty"):
            state = self.log[-1] | {key: (*self.log[-1].get(key, ()), *own) for key, own in txn.own.items()}
            self.log.append(state)
            self.written.append(frozenset(txn.own))
        outcome = Outcome.ABORTED if aborted else Outcome.COMMITTED
        if not aborted and self.chance.random() < 0.1:
            outcome = Outcome.UNKNOWN
        ended = self._tick() if outcome is Outcome.COMMITTED else None
        statements = tuple(txn.statements)
        self.history.append(Transaction(txn.name, txn.level, outcome, statements, txn.began, sent, ended))
