"""Transactions that began before rows were rewritten, and commit after the new rows became public."""

from contextlib import ExitStack, closing

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.verify.consistency import check
from tests.changer.changing import ask, begin, prepare, run_between
from tests.support.databases import MakePlace
from tests.support.nodes import Place

pytestmark = pytest.mark.either_catalog

CHANGES = {
    "type": "alter table concurrently item alter column code type int using substr(code, 2)::int",
    "key": "alter table concurrently item alter primary key using columns (number)",
}
# By the next step: no node knows the change, all nodes do, it is about to become public.
MOMENTS = ["before", "backfill", "mutation"]
WRITES = {
    "insert": "insert into item values (1001, 'c1001', 1, 1001)",
    "update": "update item set code = 'c77001' where id = 7",
    "other": "update item set category = 99 where id = 8",
    "move": "update item set id = 1009, number = 1009 where id = 9",
    "delete": "delete from item where id = 10",
    "twice": "insert into item values (1011, 'c2011', 1, 1011); update item set code = 'c1011' where id = 1011",
    "load": "insert into item select i, 'c' || i, 1, i from generate_series(5001, 6500) g(i)",
    "many": "update item set category = 100 where id between 201 and 400",
}


def number(place: Place) -> None:
    """The shop, where rows have a number, and indexes."""
    prepare(place)
    with closing(open_node(place.data, place.catalog, name="builder")) as node:
        ask(node, "alter table item add column number int")
        ask(node, "update item set number = id")
        ask(node, "alter table item alter column number set not null")
        ask(node, "alter table item add unique (number)")
        ask(node, "create unique index item_code on item (code)")
        ask(node, "create index item_category on item (category, number)")


@pytest.fixture
def shop(place_for: MakePlace, request: pytest.FixtureRequest) -> Place:
    return place_for("data", number if "numbered" in request.fixturenames else prepare)


@pytest.fixture
def numbered(node: Node) -> Node:
    return node


def expected() -> set[tuple[object, ...]]:
    rows = {i: (i, i, i % 7, i) for i in range(1, 501)}
    rows |= {i: (i, i, 1, i) for i in (1001, 1011, *range(5001, 6501))}
    rows[1011] = (1011, 1011, 1, 1011)
    rows[7] = (7, 77001, 0, 7)
    rows[8] = (8, 8, 99, 8)
    rows[9] = (1009, 9, 2, 1009)
    del rows[10]
    rows |= {i: (i, i, 100, i) for i in range(201, 401)}
    return set(rows.values())


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("what", CHANGES)
def test_late_transactions_commit(shop: Place, numbered: Node, what: str, moment: str):
    with ExitStack() as stack:
        there = stack.enter_context(closing(open_node(shop.data, shop.catalog, name="there")))
        writers = {how: stack.enter_context(closing(Session(there))) for how in WRITES}

        begun: list[str] = []

        def write(stage: str) -> None:
            if stage == moment and not begun:
                begun.append(stage)
                for how, session in writers.items():
                    session.execute("begin")
                    for statement in WRITES[how].split("; "):
                        session.execute(statement)

        write("before")
        job = run_between(numbered, begin(numbered, CHANGES[what]), write, drain_ms=50)
        assert job.status is JobStatus.SUCCEEDED
        # Fences transactions that know the new rows only as future ones.
        ask(numbered, "set seachange.drain_timeout = '50ms'; create index item_number on item (number)")
        for session in writers.values():
            session.execute("commit")
    code = "code" if what == "type" else "substr(code, 2)::int"
    assert set(ask(numbered, f"select id, {code}, category, number from item")) == expected()
    assert ask(numbered, "select id from item where number = 1009") == [(1009,)]
    assert ask(numbered, "select number from item where id in (9, 10)") == []
    assert check(numbered) == []


@pytest.mark.parametrize("what", CHANGES)
def test_a_row_that_was_changed_meanwhile_is_a_conflict(shop: Place, numbered: Node, what: str):
    """By a transaction that knows only the new rows."""
    with ExitStack() as stack:
        there = stack.enter_context(closing(open_node(shop.data, shop.catalog, name="there")))
        late = {how: stack.enter_context(closing(Session(there))) for how in ("other", "insert", "delete")}
        for how, session in late.items():
            # At READ COMMITTED the statement would be run again.
            session.execute("begin isolation level repeatable read")
            session.execute(WRITES[how])
        assert run_between(numbered, begin(numbered, CHANGES[what]), lambda s: None, 50).status is JobStatus.SUCCEEDED
        ask(numbered, "update item set category = 5 where id = 8")
        ask(numbered, "update item set category = 6 where id = 10")
        code = "1001" if what == "type" else "'c1001'"
        ask(numbered, f"insert into item values (1001, {code}, 2, 1001)")
        outcomes = {}
        for how, session in late.items():
            with pytest.raises(errors.Error) as caught:
                session.execute("commit")
            outcomes[how] = caught.value.sqlstate
    assert outcomes.pop("insert") in ("40001", "23505")
    assert outcomes == {"other": "40001", "delete": "40001"}
    assert ask(numbered, "select id, category from item where id in (8, 10, 1001) order by id") == [
        (8, 5),
        (10, 6),
        (1001, 2),
    ]
    assert check(numbered) == []


@pytest.mark.parametrize(
    "read", ["count(*) from item", "code from item where id = 7", "id from item where category = 9"]
)
@pytest.mark.parametrize("first", ["alter table item alter column code type text using code || '!'", "truncate item"])
def test_what_a_serializable_transaction_has_read_of_rows_that_were_replaced(node: Node, first: str, read: str):
    """Others write to an index that it does not know."""
    with closing(Session(node)) as late:
        late.execute("begin isolation level serializable")
        late.execute(f"select {read}")
        late.execute("insert into other values (1000, 'seen')")
        ask(node, "set seachange.drain_timeout = '50ms'; " + first)
        ask(node, "insert into item values (7000, 'new', 9)")
        ask(node, "update item set code = 'changed' where id = 7")
        with pytest.raises(errors.SerializationFailure):
            late.execute("commit")


READS = ["count(*) from item where category = 3", "code from item where id = 7", "id from item where code = 'c7'"]


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize("read", [*READS, "count(*) from item"])
@pytest.mark.parametrize("what", CHANGES)
def test_what_a_serializable_transaction_has_read_may_be_written_again(numbered: Node, what: str, read: str):
    """The same rows in another index are not writes; nor are rows that it has not read."""

    def write(stage: str) -> None:
        if stage == "backfill" and read in READS:
            ask(numbered, "update item set category = 8 where id = 8")

    with closing(Session(numbered)) as late:
        late.execute("begin isolation level serializable")
        late.execute(f"select {read}")
        late.execute("insert into other values (1000, 'seen')")
        assert run_between(numbered, begin(numbered, CHANGES[what]), write, drain_ms=50).status is JobStatus.SUCCEEDED
        late.execute("commit")
    assert ask(numbered, "select code from other where id = 1000") == [("seen",)]


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize("stage", ["backfill", "mutation", "after"])
@pytest.mark.parametrize("read", [*READS, "count(*) from item"])
def test_what_a_serializable_transaction_has_read_was_changed_before_or_after(numbered: Node, stage: str, read: str):
    with closing(Session(numbered)) as late:
        late.execute("begin isolation level serializable")
        late.execute(f"select {read}")
        late.execute("insert into other values (1000, 'seen')")
        written: list[str] = []

        def write(now: str) -> None:
            if now == stage and not written:
                written.append(now)
                ask(numbered, "update item set category = 3 where id = 7")

        job = run_between(numbered, begin(numbered, CHANGES["key"]), write, drain_ms=50)
        assert job.status is JobStatus.SUCCEEDED
        write("after")
        assert written
        with pytest.raises(errors.SerializationFailure):
            late.execute("commit")


def test_locked_row_is_not_changed_by_others(node: Node):
    """Also for transactions that know it only in its rewritten form."""
    with closing(Session(node)) as locker:

        def lock(stage: str) -> None:
            if stage == "mutation":
                locker.execute("begin")
                assert locker.execute("select code from item where id = 7 for update").rows == [("c7",)]
                locker.execute("insert into other values (1000, 'c7')")

        assert run_between(node, begin(node, CHANGES["type"]), lock, 50).status is JobStatus.SUCCEEDED
        with pytest.raises(errors.LockNotAvailable):
            ask(node, "set lock_timeout = '10ms'; update item set code = 70 where id = 7")
        locker.execute("commit")
