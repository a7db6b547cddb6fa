"""Many sessions of one node on few rows: they wait for each other, and no client gets a conflict."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.database import open_quiet
from tests.engine.threads import together
from tests.support.workers import wait_until

SESSIONS = 8
ROUNDS = 40
ACCOUNTS = 40
SEED = 7
TABLES = ("branches", "tellers", "accounts")


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = open_quiet(tmp_path_factory.mktemp("hot"))
    with_tables(node)
    yield node
    node.close()


def with_tables(node: Node) -> None:
    session = Session(node)
    for table in TABLES:
        session.execute(f"create table {table} (id int primary key, balance int)")
        session.execute(f"insert into {table} values " + ", ".join(f"({i}, 0)" for i in range(ACCOUNTS)))
    session.execute("create table history (account int, delta int)")
    session.close()


def changes(generator: random.Random) -> list[str]:
    """A transaction of TPC-B: one branch is everybody's."""
    account, teller, delta = generator.randrange(ACCOUNTS), generator.randrange(4), generator.randint(1, 9)
    return [
        f"update accounts set balance = balance + {delta} where id = {account}",
        f"update tellers set balance = balance + {delta} where id = {teller}",
        f"update branches set balance = balance + {delta} where id = 1",
        f"insert into history values ({account}, {delta})",
    ]


def run(node: Node, number: int, blocks: bool) -> Counter[str]:
    """One client's work; gives how often it saw which SQLSTATE."""
    seen: Counter[str] = Counter()
    generator = random.Random(f"{SEED}-{number}")
    session = Session(node)
    for _ in range(ROUNDS):
        statements = changes(generator)
        for statement in ["begin", *statements, "commit"] if blocks else statements:
            try:
                session.execute(statement)
            except errors.Error as problem:
                seen[problem.sqlstate] += 1
    session.close()
    return seen


@pytest.mark.parametrize("blocks", [False, True], ids=["autocommit", "blocks"])
def test_no_client_sees_a_conflict(node: Node, blocks: bool) -> None:
    print(f"seed {SEED}")
    seen = sum(together(*(lambda n=n: run(node, n, blocks) for n in range(SESSIONS))), Counter())
    assert not seen
    session = Session(node)
    total = session.execute("select sum(delta), count(*) from history").rows[0]
    assert total[1] == SESSIONS * ROUNDS
    for table in TABLES:
        assert session.execute(f"select sum(balance) from {table}").rows[0][0] == total[0]
    session.close()
    assert not len(node.epoch.locks)


@pytest.fixture
def pair(node: Node) -> Iterator[tuple[Session, Session]]:
    first, second = Session(node), Session(node)
    yield first, second
    first.close()
    second.close()


def test_a_waiting_statement_can_be_cancelled(node: Node, pair: tuple[Session, Session]) -> None:
    first, second = pair
    first.execute("begin; update branches set balance = 1 where id = 1")

    def cancel() -> str:
        wait_until(lambda: node.epoch.locks.waiting, "the second to wait")
        second.interrupt()
        return "cancelled"

    def write() -> str:
        with pytest.raises(errors.QueryCanceled) as caught:
            second.execute("update branches set balance = 2 where id = 1")
        return caught.value.sqlstate

    assert together(cancel, write) == ["cancelled", "57014"]
    first.execute("commit")
    assert second.execute("select balance from branches where id = 1").rows[0] == (1,)


def test_the_second_to_insert_a_key_waits_for_the_first(node: Node, pair: tuple[Session, Session]) -> None:
    first, second = pair
    second.execute("begin")
    second.execute("select * from branches where id = 1")
    for end, expected in (("rollback", None), ("commit", "23505")):
        first.execute("begin; insert into branches values (1000, 0)")

        def finish(end: str = end) -> str | None:
            wait_until(lambda: node.epoch.locks.waiting, "the second to wait")
            first.execute(end)
            return None

        def write() -> str | None:
            try:
                second.execute("insert into branches values (1000, 1)")
            except errors.Error as problem:
                return problem.sqlstate
            second.execute("rollback")
            return None

        assert together(finish, write) == [None, expected]


def test_a_deadlock_has_one_victim(node: Node, pair: tuple[Session, Session]) -> None:
    first, second = pair
    first.execute("begin; update branches set balance = 1 where id = 1")
    second.execute("begin; update branches set balance = 2 where id = 2")

    def write(session: Session, id_: int) -> str | None:
        try:
            session.execute(f"update branches set balance = 3 where id = {id_}")
            session.execute("commit")
        except errors.Error as problem:
            session.execute("rollback")
            return problem.sqlstate
        return None

    ends = together(lambda: write(first, 2), lambda: write(second, 1))
    assert sorted(ends, key=str) == ["40P01", None]
