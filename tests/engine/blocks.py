"""A transaction block and another session, on two nodes over a database that the module's `SETUP` describes."""

import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import Any

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.runtime.faults import FAULTS
from tests.support.databases import MakePlace
from tests.support.forks import Fork
from tests.support.models import Build
from tests.support.nodes import Place
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

Sessions = tuple[Session, Session]
LEVELS = ["read committed", "repeatable read"]
ROWS = 100
# For modules that have no SETUP of their own.
ONE_TABLE = (
    "create table a (id int primary key, x int, y text)",
    f"insert into a select i, i % 10, 'r' || i from generate_series(1, {ROWS}) g (i)",
)


# A drain waits for blocks that the same thread goes on with later: it ends by its timeout.
SETTINGS = """
[seachange]
drain_timeout = "50ms"
"""


@cache
def building(statements: tuple[str, ...]) -> Build:
    """Runs statements in a new database; the same function for the same statements, so that it is built once."""

    def build(place: Place) -> None:
        (place.data / "seachange.toml").write_text(SETTINGS)
        with closing(open_node(place.data, place.catalog)) as node, closing(Session(node)) as session:
            for sql in statements:
                session.execute(sql)

    return build


@pytest.fixture
def place(place_for: MakePlace, request: pytest.FixtureRequest) -> Place:
    return place_for("data", building(getattr(request.module, "SETUP", ONE_TABLE)))


@pytest.fixture
def nodes(place: Place) -> Iterator[tuple[Node, Node]]:
    with (
        closing(open_node(place.data, place.catalog, name="here")) as here,
        closing(open_node(place.data, place.catalog, name="there")) as there,
    ):
        yield here, there
        FAULTS.disarm()


@pytest.fixture
def sessions(nodes: tuple[Node, Node]) -> Iterator[Sessions]:
    """The block, and another session, on two nodes."""
    with closing(Session(nodes[0])) as block, closing(Session(nodes[1])) as other:
        yield block, other


def begin(session: Session, level: str = LEVELS[0]) -> None:
    session.execute(f"begin isolation level {level}")


def rows(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return list(session.execute(sql).rows)


def ids(session: Session, where: str) -> list[int]:
    return [id_ for (id_,) in rows(session, f"select id from a where {where} order by id")]


def indexes(session: Session) -> set[str]:
    return {name for (name,) in rows(session, "select indexname from pg_indexes where tablename = 'a'")} - {"a_pkey"}


def jobs(session: Session) -> list[tuple[Any, ...]]:
    return rows(session, "select status, stage from seachange.jobs order by id")


def published(session: Session) -> list[tuple[str, str]]:
    """The indexes of the published version of the table, hidden ones included, with their states."""
    session.node.read_head()
    table = next(t for t in session.node.epoch.schemas.newest.by_id.values() if t.name == "a")
    return [(index.name, index.state.value) for index in table.secondary]


def is_valid(session: Session, name: str) -> bool:
    ((valid,),) = rows(session, f"select convalidated from pg_constraint where conname = '{name}'")
    return bool(valid)


@contextmanager
def refused(sqlstate: str) -> Iterator[None]:
    with pytest.raises(errors.Error) as caught:
        yield
    assert caught.value.sqlstate == sqlstate


@contextmanager
def sent(session: Session, sql: str) -> Iterator[list[str]]:
    """A statement that is on its way, and has to wait; gives its code when it has ended."""
    ended: list[str] = []

    def send() -> None:
        try:
            session.execute(sql)
            ended.append("")
        except errors.Error as problem:
            ended.append(problem.sqlstate)

    thread = threading.Thread(target=send)
    thread.start()
    wait_until(lambda: ended or waiters(session), "it to wait")
    assert not ended, ended
    yield ended
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def waiters(session: Session) -> bool:
    """A session waits for a lock: between nodes, or within one."""
    return bool(session.node.parts.catalog.lock_queues().waits) or bool(session.node.epoch.locks.waiting)


def run_until_killed(place: Place, fault: str, *statements: str) -> None:
    """An embedded session that dies at a fault point."""
    catalog = ["--catalog", place.catalog] if place.catalog else []
    commands = [part for sql in statements for part in ("-c", sql)]
    arguments = ["sql", "--data", str(place.data), *catalog, *commands]
    with Fork("seachange.cli.main", *arguments, fault=fault) as process:
        ended = process.communicate()
    assert ended.returncode == -signal.SIGKILL, (ended.stdout, ended.stderr)
