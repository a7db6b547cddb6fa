"""Runs the steps of a script in one interleaving, each session in a thread of its own, and compares the outcome with
every serial execution of the transactions that committed, on SQLite as the model.

A step that waits for a lock is left waiting while others go on; steps of its session wait behind it.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from seachange import errors
from seachange.engine.locks.lock_graph import Party, blockers, find_cycle
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.isolation.script import Script
from tests.support.patience import PATIENCE_S

Rows = tuple[tuple[Any, ...], ...]
# How a transaction may fail: as a conflict, or as the victim of a deadlock.
_EXPECTED = ("40001", "40P01")
# Pauses between two looks at who waits: a step that ends is seen at once, and each look reads the queues of locks.
PAUSE_S_MIN, PAUSE_S_MAX = 0.0005, 0.008


@dataclass(frozen=True, slots=True)
class Outcome:
    """`read`: what each session that committed read, step by step; `failed`: the others, with the SQLSTATE."""

    read: dict[str, tuple[Rows, ...]]
    failed: dict[str, str]
    final: Rows


@dataclass(slots=True)
class StepRunner:
    """The steps of one session, each in a thread. Errors other than the expected ones fail the test; None expects any
    error that has an SQLSTATE of its own."""

    session: Session
    level: str
    pool: ThreadPoolExecutor
    steps: deque[str]
    expected: Collection[str] | None = _EXPECTED
    begun: bool = False
    read: list[Rows] = field(default_factory=list)
    problem: str | None = None
    flight: Future[None] | None = None

    def start(self) -> None:
        self.flight = self.pool.submit(self._run, self.steps.popleft())

    def _run(self, step: str) -> None:
        if self.problem is not None:
            return
        try:
            if not self.begun:
                self.session.execute(f"begin isolation level {self.level}")
                self.begun = True
            result = self.session.execute(step)
            if result.columns is not None:
                self.read.append(_sorted(result.rows))
        except errors.Error as problem:
            self.problem = problem.sqlstate
            self.session.rollback()
            if problem.sqlstate == errors.Bug.sqlstate or (self.expected and problem.sqlstate not in self.expected):
                raise


class ScriptRunner:
    """Several sessions of one node, or one session each of several nodes."""

    def __init__(self, nodes: Sequence[Node], sessions: int) -> None:
        self._nodes = nodes
        self._sessions = [Session(nodes[i % len(nodes)]) for i in range(sessions)]
        self._control = Session(nodes[0])
        self._pool = ThreadPoolExecutor(sessions)

    def close(self) -> None:
        self._pool.shutdown()
        for session in (*self._sessions, self._control):
            session.close()

    def run(self, script: Script, level: str, order: Sequence[str]) -> Outcome:
        self._prepare(script)
        runners = {
            name: StepRunner(session, level, self._pool, deque([*steps, "commit"]))
            for session, (name, steps) in zip(self._sessions, script.sessions.items(), strict=False)
        }
        backlog: deque[str] = deque(order)
        while backlog:
            name = next(name for name in backlog if runners[name].flight is None)
            backlog.remove(name)
            runners[name].start()
            settle(self._nodes, list(runners.values()))
        assert all(runner.flight is None for runner in runners.values()), "a session waits for ever"
        return Outcome(
            {name: tuple(r.read) for name, r in runners.items() if r.problem is None},
            {name: r.problem for name, r in runners.items() if r.problem is not None},
            _sorted(self._control.execute(script.check).rows),
        )

    def _prepare(self, script: Script) -> None:
        """The tables are made once; their rows each time."""
        for statement in script.setup:
            words = statement.split()
            if words[0] == "create" and not self._exists(words[2]):
                self._control.execute(statement)
            elif words[0] == "create":
                self._control.execute(f"delete from {words[2]}")
            else:
                self._control.execute(statement)

    def _exists(self, table: str) -> bool:
        try:
            self._control.execute(f"select 1 from {table} where false")
        except errors.UndefinedTable:
            return False
        return True


def settle(nodes: Sequence[Node], runners: Sequence[StepRunner]) -> None:
    """Waits until every step that was started is done or waits for a lock."""
    deadline = time.monotonic() + PATIENCE_S
    pause_s = PAUSE_S_MIN
    while True:
        for runner in runners:
            if runner.flight is not None and runner.flight.done():
                runner.flight.result()
                runner.flight = None
        flying = sum(runner.flight is not None for runner in runners)
        # If none is left to go on, the sessions wait for each other, and the deadlock is about to be broken.
        goes_on = not flying or any(runner.flight is None and runner.steps for runner in runners)
        if goes_on and flying == len(_find_waiting(nodes)):
            return
        assert time.monotonic() < deadline, "a step neither ends nor waits"
        wait([runner.flight for runner in runners if runner.flight is not None], pause_s, FIRST_COMPLETED)
        pause_s = min(2 * pause_s, PAUSE_S_MAX)


def _find_waiting(nodes: Sequence[Node]) -> set[Party]:
    """The sessions that wait for a lock within their node, for one of another node, or for the change of another block,
    and will until that one goes on: no turn, no cycle ends it. A long wait within a node is in the catalog too."""
    within = {Party(node.epoch.epoch, actor) for node in nodes for actor in node.epoch.locks.waits_for()}
    queues = nodes[0].parts.catalog.lock_queues()
    between = {Party(wait.epoch, wait.actor) for wait in queues.waits if blockers(queues, wait)}
    return within | {party for party in between if find_cycle(queues, {}, party) is None}


def _sorted(rows: Sequence[Sequence[Any]]) -> Rows:
    return tuple(sorted(tuple(row) for row in rows))


def is_serial(script: Script, outcome: Outcome) -> bool:
    """Whether some order of the committed transactions, one after the other, has the same outcome."""
    return any(_run_serially(script, order) == (outcome.read, outcome.final) for order in permutations(outcome.read))


def _run_serially(script: Script, order: Sequence[str]) -> tuple[dict[str, tuple[Rows, ...]], Rows]:
    model = sqlite3.connect(":memory:")
    try:
        for statement in script.setup:
            model.execute(statement)
        read = {}
        for name in order:
            found = [model.execute(_plain(step)) for step in script.sessions[name]]
            read[name] = tuple(_sorted(cursor.fetchall()) for cursor in found if cursor.description is not None)
        return read, _sorted(model.execute(script.check).fetchall())
    finally:
        model.close()


def _plain(step: str) -> str:
    """A query without the locks that it takes: the model has no use for them."""
    return step.partition(" for ")[0] if step.startswith("select") else step
