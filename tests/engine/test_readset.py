"""SERIALIZABLE: what a transaction has read must still be so when it commits, also in the tail under the lock."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.engine.transaction.submit import UNLISTED_ATTEMPTS
from seachange.engine.transaction.transaction import Transaction
from seachange.model.isolation import Isolation
from seachange.model.schema.descriptor import Table
from tests.engine.database import bulk, create, insert, rows, scan
from tests.engine.ports import HookedCatalog, open_hooked


@pytest.fixture
def hooked(tmp_path: Path, node: Node) -> Iterator[tuple[Node, HookedCatalog]]:
    create(node)
    insert(node, (1, "a", 1), (2, "b", 2))
    opened = open_hooked(tmp_path)
    yield opened
    opened[0].close()


def begin(node: Node) -> tuple[Transaction, Table]:
    txn = node.begin(Isolation.SERIALIZABLE)
    return txn, txn.schema.table(None, "t")


def change(node: Node, id_: int) -> None:
    txn = node.begin()
    table = txn.schema.table(None, "t")
    old = txn.reads.get(table, (id_,))
    assert old is not None
    txn.writes.update(table, [old], [(id_, "changed", 0)])
    txn.commit()


def is_refused(txn: Transaction) -> bool:
    try:
        txn.commit()
    except errors.SerializationFailure as problem:
        return problem.sqlstate == "40001"
    return False


Disturbance = Callable[[Node], object]


def insert_row(node: Node) -> None:
    insert(node, (7, "new", 7))


def bulk_row(node: Node) -> None:
    bulk(node, (7, "new", 7))


def change_first(node: Node) -> None:
    change(node, 1)


@pytest.mark.parametrize("in_tail", [False, True], ids=["before", "in the tail"])
@pytest.mark.parametrize(
    ("read", "disturbance", "refused"),
    [
        (1, change_first, True),
        (2, change_first, False),
        (2, insert_row, False),
        (7, insert_row, True),
        (7, bulk_row, True),
        (None, change_first, True),
        (None, insert_row, True),
        (None, bulk_row, True),
    ],
)
def test_a_commit_is_refused_when_what_it_read_was_written(
    node: Node,
    hooked: tuple[Node, HookedCatalog],
    read: int | None,
    disturbance: Disturbance,
    refused: bool,
    in_tail: bool,
) -> None:
    reader, catalog = hooked
    txn, table = begin(reader)
    if read is None:
        scan(reader, txn, table)
    else:
        txn.reads.get(table, (read,))
    txn.writes.insert(table, [(100, "written", 0)])

    def disturb() -> None:
        catalog.before.pop("commit", None)
        disturbance(node)

    if in_tail:
        catalog.before["commit"] = disturb
    else:
        disturb()
    assert is_refused(txn) is refused
    assert ((100, "written", 0) in rows(node)) is not refused


def test_reads_by_key_get_through_on_a_busy_table(node: Node, hooked: tuple[Node, HookedCatalog]) -> None:
    reader, catalog = hooked
    txn, table = begin(reader)
    txn.reads.get(table, (1,))
    txn.writes.insert(table, [(100, "written", 0)])
    busy = iter(range(200, 200 + 3 * UNLISTED_ATTEMPTS))

    def disturb() -> None:
        insert(node, (next(busy), "busy", 0))

    catalog.before["commit"] = disturb
    assert not is_refused(txn)


def test_a_listed_read_is_checked_in_the_tail(node: Node, hooked: tuple[Node, HookedCatalog]) -> None:
    reader, catalog = hooked
    txn, table = begin(reader)
    txn.reads.get(table, (1,))
    txn.writes.insert(table, [(100, "written", 0)])
    attempts = iter(range(UNLISTED_ATTEMPTS + 2))

    def disturb() -> None:
        attempt = next(attempts)
        if attempt <= UNLISTED_ATTEMPTS:
            insert(node, (200 + attempt, "busy", 0))
        else:
            change_first(node)

    catalog.before["commit"] = disturb
    assert is_refused(txn)


def test_a_transaction_that_writes_nothing_needs_no_check(node: Node, other: Node) -> None:
    create(node)
    insert(node, (1, "a", 1))
    txn, table = begin(other)
    assert scan(other, txn, table) == [(1, "a", 1)]
    change(node, 1)
    assert scan(other, txn, table) == [(1, "a", 1)]
    assert txn.commit() is None


def test_its_own_writes_do_not_stand_in_its_way(node: Node) -> None:
    create(node)
    insert(node, (1, "a", 1))
    txn, table = begin(node)
    txn.writes.update(table, [(1, "a", 1)], [(1, "b", 1)])
    scan(node, txn, table)
    txn.reads.get(table, (1,))
    assert not is_refused(txn)


# Reads under conditions.


@pytest.fixture
def accounts(node: Node, other: Node) -> Iterator[tuple[Session, Session]]:
    with closing(Session(node)) as one, closing(Session(other)) as two:
        one.execute("create table a (id int primary key, owner text, kind text, amount int, unique (owner, kind))")
        one.execute("insert into a select i, 'o' || i % 10, 'k' || i, i from generate_series(1, 100) g(i)")
        one.execute("create table log (id int primary key, n bigint)")
        yield one, two


def both_commit(sessions: tuple[Session, Session], first: Sequence[str], second: Sequence[str]) -> bool:
    """Runs two transactions at the same time; the first one always gets through."""
    for session, statements in zip(sessions, (first, second), strict=True):
        session.execute("begin isolation level serializable")
        for statement in statements:
            session.execute(statement)
    sessions[0].execute("commit")
    try:
        sessions[1].execute("commit")
    except errors.SerializationFailure:
        return False
    return True


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize(
    ("mine", "other_s", "disjoint"),
    [
        ("owner = 'o1'", "owner = 'o2'", True),
        ("owner = 'o1'", "owner = 'o1'", False),
        ("amount between 1 and 40", "amount > 40", True),
        ("amount between 1 and 40", "amount >= 40", False),
        ("owner in ('o1', 'o2') and amount < 50", "owner = 'o2' and amount > 50", True),
        ("owner in ('o1', 'o2') and amount < 50", "owner in ('o3', 'o2')", False),
        ("amount is null", "amount = 1", True),
        ("amount = 2", "amount + 0 = 1", False),
        ("amount = 2", "amount = 1 or amount = 3", False),
    ],
)
def test_disjoint_conditions(node: Node, accounts, mine: str, other_s: str, disjoint: bool, compacted: bool):
    """Each withdraws what it has summed up: without a check, both would go by the old sum."""
    if compacted:
        txn = node.begin()
        table = txn.schema.table(None, "a")
        txn.rollback()
        node.compact(table)
    first = [f"select sum(amount) from a where {mine}", f"update a set kind = kind || '!' where {mine}"]
    second = [f"select sum(amount) from a where {other_s}", "insert into log values (2, 2)"]
    assert both_commit(accounts, first, second) is disjoint


def test_a_row_that_comes_to_meet_a_condition(accounts):
    reads = ["select count(*) from a where owner = 'new'", "insert into log values (2, 2)"]
    assert not both_commit(accounts, ["update a set owner = 'new' where id = 5"], reads)
    reads = ["select count(*) from a where owner = 'new'", "insert into log values (3, 2)"]
    assert not both_commit(accounts, ["delete from a where id = 5"], reads)
    reads = ["select count(*) from a where owner = 'new'", "insert into log values (4, 2)"]
    assert both_commit(accounts, ["delete from a where id = 6"], reads)


def test_many_rows_at_once_are_in_doubt(accounts):
    load = "insert into a select 1000 + i, 'bulk', 'b' || i, 0 from generate_series(1, 20000) g(i)"
    reads = ["select count(*) from a where owner = 'o1'", "insert into log values (2, 2)"]
    assert not both_commit(accounts, [load], reads)


def test_a_busy_table_whose_writes_do_not_concern_the_reader(node: Node, hooked: tuple[Node, HookedCatalog]) -> None:
    reader, catalog = hooked
    with closing(Session(reader)) as session:
        session.execute("begin isolation level serializable")
        session.execute("select * from t where v = 'a'")
        session.execute("insert into t values (100, 'written', 0)")
        busy = iter(range(200, 200 + 3 * UNLISTED_ATTEMPTS))

        def disturb() -> None:
            number = next(busy, None)
            if number is not None:
                insert(node, (number, "busy", 0))

        catalog.before["commit"] = disturb
        session.execute("commit")
        assert next(busy, None) is None


# Keys that were looked for in vain.


def test_a_unique_key_that_was_not_there(node: Node, other: Node):
    create(node, indexes=[("t_v_key", (2,), True)])
    txn, table = begin(node)
    assert txn.reads.find_unique(table, table.secondary[0], ("x",)) is None
    txn.writes.insert(table, [(100, "written", 0)])
    insert(other, (7, "x", 7))
    assert is_refused(txn)


@pytest.mark.parametrize(
    ("attempt", "disturbance"),
    [
        # A key that is taken, until it is not.
        ("update u set code = 'a' where id = 2", "delete from u where id = 1"),
        ("insert into u values (9, 'a')", "delete from u where id = 1"),
        (
            "insert into u select 100 + i, case i when 5 then 'a' end from generate_series(1, 20000) g(i)",
            "delete from u where id = 1",
        ),
        # A parent that is not there, until it is.
        ("insert into c values (1, 'x')", "insert into u values (7, 'x')"),
        ("update c set code = 'x'", "insert into u values (7, 'x')"),
        (
            "insert into c select i, 'x' || i % 100 from generate_series(1, 200) g(i)",
            "insert into u select 1000 + i, 'x' || i from generate_series(0, 99) g(i)",
        ),
        ("insert into c select i, 'x' from generate_series(1, 20000) g(i)", "insert into u values (7, 'x')"),
    ],
)
def test_why_a_statement_failed_is_something_read(node: Node, other: Node, attempt: str, disturbance: str):
    """A transaction that goes on after an error has seen why. Run alone after the disturbance it would have seen
    none."""
    with closing(Session(node)) as session, closing(Session(other)) as disturber:
        session.execute("create table u (id int primary key, code text unique)")
        session.execute("create table c (id int, code text references u (code))")
        session.execute("create table log (what text)")
        session.execute("insert into u values (1, 'a'), (2, 'b')")
        session.execute("insert into c values (0, null)")
        session.execute("begin isolation level serializable")
        session.execute("savepoint s")
        with pytest.raises(errors.Error) as failed:
            session.execute(attempt)
        assert failed.value.sqlstate in ("23505", "23503")
        session.execute("rollback to s")
        session.execute("insert into log values ('failed')")
        disturber.execute(disturbance)
        with pytest.raises(errors.SerializationFailure):
            session.execute("commit")
