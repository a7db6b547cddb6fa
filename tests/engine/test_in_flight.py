"""Transactions that are open while tables change, and are committed after it."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pytest

from seachange.engine.node import Node
from seachange.engine.opening import open_node
from seachange.engine.session import Session
from seachange.verify.consistency import check


@dataclass(frozen=True, slots=True)
class Case:
    """What a transaction does, how tables change before it commits, and what they hold then."""

    work: Sequence[str]
    changes: Sequence[str]
    rows: Sequence[tuple[object, ...]]
    given: Sequence[str] = (
        "create table t (id int primary key, u int not null unique, n int not null default 0)",
        "insert into t values (1, 10, 100), (2, 20, 200)",
    )


CASES = {
    "a converted column with a default": Case(
        ["insert into t values (3, 30, 300)", "update t set n = 201 where id = 2"],
        ["alter table t alter column n type text using 'n' || n"],
        [(1, 10, "n100"), (2, 20, "n201"), (3, 30, "n300")],
    ),
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    url = request.getfixturevalue("postgres_server").create_database() if request.param == "postgres" else None
    with closing(open_node(tmp_path_factory.mktemp("flight"), url, "one")) as node:
        node.keeper.paused = True
        yield node


@pytest.fixture
def node(opened: Node) -> Iterator[Node]:
    """A node over a database without tables."""
    yield opened
    with closing(Session(opened)) as session:
        for _, name in opened.epoch.schemas.newest.by_name:
            session.execute(f"drop table if exists {name} cascade")


@pytest.fixture
def changer(node: Node) -> Iterator[Session]:
    """A session that waits for nobody."""
    with closing(Session(node)) as session:
        session.execute("set seachange.drain_timeout = '1ms'")
        yield session


@pytest.fixture
def writer(node: Node) -> Iterator[Session]:
    with closing(Session(node)) as session:
        yield session


def run(session: Session, statements: Sequence[str]) -> None:
    for statement in statements:
        session.execute(statement)


@pytest.mark.parametrize("name", CASES)
def test_is_committed(node: Node, writer: Session, changer: Session, name: str):
    case = CASES[name]
    run(changer, case.given)
    run(writer, ["begin", *case.work])
    run(changer, case.changes)
    writer.execute("commit")
    assert sorted(changer.execute("select * from t").rows) == case.rows
    assert check(node) == []
