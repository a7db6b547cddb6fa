"""Transaction blocks that change shapes, rows and privileges, interleaved: what commits has a serial equal.

**Invariant:** after every interleaving, tables, rows, indexes, constraints and privileges are those that PostgreSQL has
after the committed blocks, one after the other in some order; at SERIALIZABLE so is what they have read. A block fails
with a conflict, a violated constraint, or as it does in some order of all blocks.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import psycopg
import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.database import open_quiet
from tests.isolation.blocks import BLOCKS, PAIRS, SETUP, TRIPLES
from tests.isolation.script import LEVELS, interleavings
from tests.isolation.tester import Rows, StepRunner, settle
from tests.support.postgres import LocalPostgres

# How many interleavings are run of blocks if not all are; and of three blocks at most.
SAMPLE = 1
SAMPLE_OF_THREE = 200
# What a block may fail with beside others: conflicts, deadlocks, constraints, which see the newest rows, and rows that
# are too wide after ROLLBACK TO has let a column go.
CONCURRENT = ("40", "23", "42601")
STATE = (
    "select table_name, column_name, data_type, is_nullable from information_schema.columns where table_schema = '{0}'",
    "select tablename, indexname from pg_indexes where schemaname = '{0}'",
    "select conname, contype from pg_constraint join pg_namespace n on n.oid = connamespace"
    " where nspname = '{0}' and contype <> 'n'",
    "select table_name, privilege_type from information_schema.role_table_grants"
    " where table_schema = '{0}' and grantee = 'reader'",
)
State = tuple[Rows, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The blocks that have failed, each with its SQLSTATE, what the others have read, and the state in the end."""

    failed: tuple[tuple[str, str], ...]
    read: tuple[tuple[str, State], ...]
    state: State


def sort_rows(rows: Sequence[Sequence[Any]]) -> Rows:
    return tuple(sorted((tuple(str(value) for value in row) for row in rows), key=str))


class SerialModel:
    """The blocks one after the other on PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        self._known: dict[tuple[str, ...], Outcome] = {}
        # Roles belong to the server.
        self._run("drop role if exists reader")
        self._run("create role reader")

    def close(self) -> None:
        self._run("drop schema if exists s cascade")
        self._run("drop role reader")
        self._connection.close()

    def outcome(self, order: tuple[str, ...]) -> Outcome:
        if order not in self._known:
            self._known[order] = self._outcome(order)
        return self._known[order]

    def _outcome(self, order: tuple[str, ...]) -> Outcome:
        for statement in ("drop schema if exists s cascade", "create schema s", "set search_path = s", *SETUP):
            self._run(statement)
        self._run("grant usage on schema s to reader")
        self._run("grant insert on parent to reader")
        failed: list[tuple[str, str]] = []
        read: list[tuple[str, State]] = []
        for name in order:
            try:
                with self._connection.transaction():
                    found = [(self._run(step), step) for step in BLOCKS[name]]
                read.append((name, tuple(sort_rows(rows) for rows, step in found if step.startswith("select"))))
            except psycopg.Error as problem:
                failed.append((name, problem.sqlstate or ""))
        tables = [row[0] for row in self._run("select tablename from pg_tables where schemaname = 's' order by 1")]
        queries = [*(query.format("s") for query in STATE), *(f"select * from {table}" for table in tables)]
        state = tuple(sort_rows(self._run(query)) for query in queries)
        return Outcome(tuple(failed), tuple(sorted(read)), state)

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement)
        return cursor.fetchall() if cursor.description is not None else []


@pytest.fixture(scope="module")
def model(postgres_server: LocalPostgres) -> Iterator[SerialModel]:
    postgres_server.start()
    url = postgres_server.create_database()
    model = SerialModel(url)
    yield model
    model.close()
    postgres_server.drop_database(url)


class BlockRunner:
    """Three sessions of one node, or of two."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._sessions = [Session(nodes[i % len(nodes)]) for i in range(3)]
        self._control = Session(nodes[0])
        self._pool = ThreadPoolExecutor(3)
        self._count = 0
        self._control.execute("create role reader")
        for session in self._sessions:
            # A drain ends when the blocks that it waits for cannot go on: the test runs one step at a time.
            session.execute("set seachange.drain_timeout = '20ms'")

    def close(self) -> None:
        self._pool.shutdown()
        for session in (*self._sessions, self._control):
            session.close()

    def run(self, names: Sequence[str], level: str, order: Sequence[int]) -> Outcome:
        schema = self._create()
        runners = {
            n: StepRunner(session, level, self._pool, deque([*BLOCKS[name], "commit"]), expected=None)
            for n, (session, name) in enumerate(zip(self._sessions, names, strict=False))
        }
        try:
            self._step(runners, deque(order))
            failed = [(names[n], runner.problem) for n, runner in runners.items() if runner.problem is not None]
            read = [(names[n], tuple(map(sort_rows, r.read))) for n, r in runners.items() if r.problem is None]
            return Outcome(tuple(failed), tuple(sorted(read)), self._state(schema))
        finally:
            # The next interleaving finds the sessions as they were, whatever this one has met.
            for runner in (runner for runner in runners.values() if runner.flight is not None):
                runner.session.interrupt()
            for runner in runners.values():
                if runner.flight is not None:
                    runner.flight.exception()
                runner.session.rollback()
            self._control.execute("set search_path = public")
            self._control.execute(f"drop schema {schema} cascade")

    def _step(self, runners: Mapping[int, StepRunner], backlog: deque[int]) -> None:
        while backlog:
            n = next(n for n in backlog if runners[n].flight is None)
            backlog.remove(n)
            runners[n].start()
            settle(self._nodes, list(runners.values()))
        assert all(runner.flight is None for runner in runners.values()), "a session waits for ever"

    def _create(self) -> str:
        self._count += 1
        schema = f"s{self._count}"
        self._control.execute(f"create schema {schema}")
        for session in (self._control, *self._sessions):
            session.execute(f"set search_path = {schema}")
        for statement in (*SETUP, f"grant usage on schema {schema} to reader", "grant insert on parent to reader"):
            self._control.execute(statement)
        return schema

    def _state(self, schema: str) -> State:
        tables = self._control.execute(f"select tablename from pg_tables where schemaname = '{schema}' order by 1").rows
        queries = [*(query.format(schema) for query in STATE), *(f"select * from {table}" for (table,) in tables)]
        return tuple(sort_rows(self._control.execute(query).rows) for query in queries)


@pytest.fixture(scope="module")
def within(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockRunner]:
    node = open_quiet(tmp_path_factory.mktemp("one_node"))
    runner = BlockRunner([node])
    yield runner
    runner.close()
    node.close()


@pytest.fixture(scope="module")
def across_postgres(tmp_path_factory: pytest.TempPathFactory, postgres_server: LocalPostgres) -> Iterator[BlockRunner]:
    postgres_server.start()
    url = postgres_server.create_database()
    data: Path = tmp_path_factory.mktemp("nodes")
    nodes = [open_node(data, url, str(n)) for n in range(2)]
    for node in nodes:
        node.maintenance.paused = True
    runner = BlockRunner(nodes)
    yield runner
    runner.close()
    for node in nodes:
        node.close()
    postgres_server.drop_database(url)


@pytest.fixture(scope="module")
def across(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockRunner]:
    data: Path = tmp_path_factory.mktemp("nodes")
    nodes = [open_quiet(data, str(n)) for n in range(2)]
    runner = BlockRunner(nodes)
    yield runner
    runner.close()
    for node in nodes:
        node.close()


def check(
    runner: BlockRunner, model: SerialModel, names: Sequence[str], level: str, sample: int | None, counts: Counter[str]
) -> None:
    orders = list(interleavings({str(n): len(BLOCKS[name]) + 1 for n, name in enumerate(names)}))
    if sample is not None:
        orders = random.Random(f"{names} {level}").sample(orders, min(sample, len(orders)))
    for order in orders:
        outcome = runner.run(names, level, [int(n) for n in order])
        counts["interleavings of blocks run"] += 1
        problem = find_problem(model, names, level, outcome)
        assert problem is None, f"{names}, order {order}: {problem}: {outcome}"


def find_problem(model: SerialModel, names: Sequence[str], level: str, outcome: Outcome) -> str | None:
    committed = [name for name, _ in outcome.read]
    serial = [found for order in permutations(committed) if not (found := model.outcome(order)).failed]
    if outcome.state not in [found.state for found in serial]:
        return "no serial equal"
    if level == "serializable" and (outcome.read, outcome.state) not in [(found.read, found.state) for found in serial]:
        return "no serial equal of what was read"
    for name, code in outcome.failed:
        in_order = any((name, code) in model.outcome(order).failed for order in permutations(names))
        if not code.startswith(CONCURRENT) and not in_order:
            return f"{name} does not fail with {code} in any order"
    return None


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> int | None:
    return None if request.config.getoption("--exhaustive") else SAMPLE


def every_other(first: int) -> list[Any]:
    """All pairs; in an ordinary run each is run either within a node or across nodes."""
    marks = ((), (pytest.mark.slow,))
    return [pytest.param(pair, marks=marks[n % 2 != first], id="-".join(pair)) for n, pair in enumerate(PAIRS)]


def levels_of(names: Sequence[str], sample: int | None, offset: int) -> Sequence[str]:
    """All, or one for each in an ordinary run."""
    place = PAIRS.index((names[0], names[1])) + offset
    return LEVELS if sample is None else (LEVELS[place % len(LEVELS)],)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("names", every_other(0))
def test_within_a_node(
    within: BlockRunner, model: SerialModel, names: Sequence[str], counts: Counter[str], sample: int | None
) -> None:
    for level in levels_of(names, sample, 0):
        check(within, model, names, level, sample, counts)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("names", every_other(1))
def test_across_nodes(
    across: BlockRunner, model: SerialModel, names: Sequence[str], counts: Counter[str], sample: int | None
) -> None:
    for level in levels_of(names, sample, 1):
        check(across, model, names, level, sample, counts)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("names", TRIPLES, ids="-".join)
def test_three_blocks(
    across: BlockRunner, model: SerialModel, names: Sequence[str], counts: Counter[str], sample: int | None
) -> None:
    for level in LEVELS:
        check(across, model, names, level, sample or SAMPLE_OF_THREE, counts)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("names", [*PAIRS, *TRIPLES], ids="-".join)
def test_postgres_catalog(across_postgres: BlockRunner, model: SerialModel, names: Sequence[str], counts: Counter[str]):
    for level in LEVELS:
        check(across_postgres, model, names, level, SAMPLE_OF_THREE, counts)
