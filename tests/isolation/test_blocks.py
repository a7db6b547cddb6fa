"""Pairs of transaction blocks that change shapes, rows and privileges, interleaved: what commits has a serial equal.

**Invariant:** after every interleaving at READ COMMITTED, tables, rows, indexes, constraints and privileges are those
that PostgreSQL has after the committed blocks, one after the other in some order.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import psycopg
import pytest

from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.database import open_quiet
from tests.isolation.blocks import BLOCKS, PAIRS, SETUP
from tests.isolation.script import interleavings
from tests.isolation.tester import Rows, StepRunner, settle
from tests.support.postgres import LocalPostgres

LEVEL = "read committed"
# How many interleavings of a pair are run if not all are.
SAMPLE = 1
STATE = (
    "select table_name, column_name, data_type, is_nullable from information_schema.columns where table_schema = '{0}'",
    "select tablename, indexname from pg_indexes where schemaname = '{0}'",
    "select conname, contype from pg_constraint join pg_namespace n on n.oid = connamespace"
    " where nspname = '{0}' and contype <> 'n'",
    "select table_name, privilege_type from information_schema.role_table_grants"
    " where table_schema = '{0}' and grantee = 'reader'",
)
State = tuple[Rows, ...]


def sort_rows(rows: Sequence[Sequence[Any]]) -> Rows:
    return tuple(sorted((tuple(str(value) for value in row) for row in rows), key=str))


class SerialModel:
    """The blocks one after the other on PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        self._known: dict[tuple[str, ...], tuple[dict[str, str], State]] = {}
        # Roles belong to the server.
        self._run("drop role if exists reader")
        self._run("create role reader")

    def close(self) -> None:
        self._run("drop schema if exists s cascade")
        self._run("drop role reader")
        self._connection.close()

    def outcome(self, order: tuple[str, ...]) -> tuple[dict[str, str], State]:
        """The SQLSTATE of each block that fails, by its place in the order, and the state in the end."""
        if order not in self._known:
            self._known[order] = self._outcome(order)
        return self._known[order]

    def _outcome(self, order: tuple[str, ...]) -> tuple[dict[str, str], State]:
        for statement in ("drop schema if exists s cascade", "create schema s", "set search_path = s", *SETUP):
            self._run(statement)
        self._run("grant usage on schema s to reader")
        self._run("grant insert on parent to reader")
        failed: dict[str, str] = {}
        for name in order:
            try:
                with self._connection.transaction():
                    for statement in BLOCKS[name]:
                        self._run(statement)
            except psycopg.Error as problem:
                failed[name] = problem.sqlstate or ""
        tables = [row[0] for row in self._run("select tablename from pg_tables where schemaname = 's' order by 1")]
        queries = [*(query.format("s") for query in STATE), *(f"select * from {table}" for table in tables)]
        return failed, tuple(sort_rows(self._run(query)) for query in queries)

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
    """Two sessions of one node, or of two."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._sessions = [Session(nodes[i % len(nodes)]) for i in range(2)]
        self._control = Session(nodes[0])
        self._pool = ThreadPoolExecutor(2)
        self._count = 0
        self._control.execute("create role reader")
        for session in self._sessions:
            # A drain ends when the blocks that it waits for cannot go on: the test runs one step at a time.
            session.execute("set seachange.drain_timeout = '20ms'")

    def close(self) -> None:
        self._pool.shutdown()
        for session in (*self._sessions, self._control):
            session.close()

    def run(self, names: Sequence[str], level: str, order: Sequence[int]) -> tuple[dict[int, str], State]:
        schema = self._create()
        runners = {
            n: StepRunner(session, level, self._pool, deque([*BLOCKS[name], "commit"]), expected=None)
            for n, (session, name) in enumerate(zip(self._sessions, names, strict=True))
        }
        backlog = deque(order)
        while backlog:
            n = next(n for n in backlog if runners[n].flight is None)
            backlog.remove(n)
            runners[n].start()
            settle(self._nodes, list(runners.values()))
        assert all(runner.flight is None for runner in runners.values()), "a session waits for ever"
        failed = {n: runner.problem for n, runner in runners.items() if runner.problem is not None}
        state = self._state(schema)
        self._control.execute("set search_path = public")
        self._control.execute(f"drop schema {schema} cascade")
        return failed, state

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
def across(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockRunner]:
    data: Path = tmp_path_factory.mktemp("nodes")
    nodes = [open_quiet(data, str(n)) for n in range(2)]
    runner = BlockRunner(nodes)
    yield runner
    runner.close()
    for node in nodes:
        node.close()


def check(
    runner: BlockRunner, model: SerialModel, names: Sequence[str], sample: int | None, counts: Counter[str]
) -> None:
    orders = list(interleavings({str(n): len(BLOCKS[name]) + 1 for n, name in enumerate(names)}))
    if sample is not None:
        orders = random.Random(str(names)).sample(orders, min(sample, len(orders)))
    for order in orders:
        failed, state = runner.run(names, LEVEL, [int(n) for n in order])
        counts["interleavings of blocks run"] += 1
        committed = [name for n, name in enumerate(names) if n not in failed]
        serial = [model.outcome(tuple(one)) for one in permutations(committed)]
        is_serial = any(not problems and after == state for problems, after in serial)
        assert is_serial, f"{names}, order {order}: failed {failed}, left {state}"


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> int | None:
    return None if request.config.getoption("--exhaustive") else SAMPLE


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_within_a_node(
    within: BlockRunner, model: SerialModel, names: Sequence[str], counts: Counter[str], sample: int | None
) -> None:
    check(within, model, names, sample, counts)


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_across_nodes(
    across: BlockRunner, model: SerialModel, names: Sequence[str], counts: Counter[str], sample: int | None
) -> None:
    check(across, model, names, sample, counts)
