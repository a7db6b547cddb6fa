"""Transactions that are open while tables change, and are committed after it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.runtime.faults import FAULTS
from seachange.sql.copy.arrow_load import load_arrow
from seachange.verify.consistency import check

pytestmark = pytest.mark.either_catalog


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
    "a column and a foreign key that came": Case(
        ["insert into t values (3, 30, 3)", "delete from parent where id = 2"],
        ["alter table t add column c int default 7", "alter table t add foreign key (n) references parent"],
        [(1, 10, 1, 7), (3, 30, 3, 7)],
        [
            "create table t (id int primary key, u int not null unique, n int not null default 0)",
            "insert into t values (1, 10, 1)",
            "create table parent (id int primary key)",
            "insert into parent values (1), (2), (3)",
        ],
    ),
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
        node.maintenance.paused = True
        yield node


@pytest.fixture
def node(opened: Node) -> Iterator[Node]:
    """A node over a database without tables."""
    yield opened
    with closing(Session(opened)) as session:
        for _, name in opened.epoch.schemas.newest.within().by_name:
            session.execute(f"drop table if exists {name} cascade")


@pytest.fixture
def changer(node: Node) -> Iterator[Session]:
    """A session that does not wait for locks."""
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


# Before the change, and while the rows are rewritten: the first is rebased, the second knows the change.
BEGUN = ("", "job.attached")
REWRITES = (
    "alter table t alter primary key using columns (u)",
    "alter table t alter column n type text using 'n' || n",
    "alter table t add column g int generated always as (id + 1) stored",
)


def run_during(changer: Session, change: str, point: str, work: Callable[[], None]) -> None:
    """The work comes at a point of the change, or before it."""
    if not point:
        work()
        changer.execute(change)
        return
    FAULTS.arm(point, work)
    try:
        changer.execute(change)
    finally:
        FAULTS.disarm()


@pytest.mark.parametrize("begun", BEGUN)
@pytest.mark.parametrize("change", REWRITES)
@pytest.mark.parametrize("strength", ["update", "key share"])
def test_a_locked_row_stays_locked(writer: Session, changer: Session, begun: str, change: str, strength: str):
    run(changer, [*CASES["a converted column with a default"].given, "create table seen (id int)"])
    work = ["begin", f"select * from t where id = 1 for {strength}", "insert into seen values (1)"]
    run_during(changer, change, begun, lambda: run(writer, work))
    run(changer, ["set lock_timeout = '10ms'", "update t set u = 21 where id = 2"])
    # Locks are those of keys: they are carried over unless the table gets other keys.
    if begun or "primary key" not in change:
        with pytest.raises(errors.LockNotAvailable):
            changer.execute("delete from t where id = 1")
        writer.execute("commit")
    else:
        changer.execute("delete from t where id = 1")
        with pytest.raises(errors.SerializationFailure):
            writer.execute("commit")


def test_a_locked_row_without_changes_survives_a_conversion(writer: Session, changer: Session):
    run(changer, CASES["a converted column with a default"].given)
    run(writer, ["begin", "select * from t where id = 1 for update", "update t set n = 201 where id = 2"])
    run(changer, REWRITES)
    changer.execute("insert into t (id, u) values (3, 30)")
    writer.execute("commit")
    assert sorted(changer.execute("select id, n from t").rows) == [(1, "n100"), (2, "n201"), (3, "0")]


def test_a_load_that_knows_the_index_which_is_checked_by_now(node: Node, writer: Session, changer: Session):
    run(changer, CASES["a converted column with a default"].given)
    rows = pa.table({"id": [3, 4, 5], "u": [30, 40, 50], "n": [300, 400, 500]})

    def load() -> None:
        writer.begin()
        writer.in_transaction(lambda txn: load_arrow(txn.port, txn.schema.table(None, "t"), rows))

    run_during(changer, "create unique index on t (n)", "job.built", load)
    writer.execute("commit")
    assert check(node) == []
    with pytest.raises(errors.UniqueViolation):
        changer.execute("insert into t values (6, 60, 500)")


@pytest.mark.parametrize("rows_max", [10_000, 1])
def test_rows_that_a_column_to_come_refers_to(
    writer: Session, changer: Session, rows_max: int, monkeypatch: pytest.MonkeyPatch
):
    """Few of them, and so many that they are changed in bulk."""
    monkeypatch.setattr("seachange.sql.write.update.ROWS_MAX", rows_max)
    run(changer, CASES["a converted column with a default"].given)
    run(changer, ["create table c (id int primary key)", "insert into c values (1)"])
    refused: list[str] = []

    def change() -> None:
        for statement in ("delete from t where id <= 2", "update t set id = id + 10 where id <= 2"):
            with pytest.raises(errors.StillReferenced):
                writer.execute(statement)
            refused.append(statement)

    run_during(changer, "alter table c add column t int default 2 references t", "job.validated", change)
    assert len(refused) == 2
