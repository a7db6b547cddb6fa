"""UNDROP TABLE within the retention, and what garbage collection leaves of a table after it."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.ids import IndexId
from seachange.runtime.faults import FAULTS
from seachange.verify.consistency import inspect
from tests.support.databases import MakePlace, catalog_kind, place, place_for
from tests.support.nodes import Place

__all__ = ["MakePlace", "catalog_kind", "place", "place_for"]

# More than are inline are in files.
ROWS, INLINE_ROWS_MAX = 600, 100


@pytest.fixture
def node(place: Place) -> Iterator[Node]:
    opened = open_node(place.data, place.catalog, name="here")
    opened.maintenance.paused = True
    opened.parts.inline_rows_max = INLINE_ROWS_MAX
    yield opened
    FAULTS.disarm()
    opened.close()


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    """A table in files and inline batches, with an index, checks and a foreign key."""
    session = Session(node)
    session.execute("create table kind (id int primary key)")
    session.execute("insert into kind select i from generate_series(0, 9) g(i)")
    session.execute(
        "create table item (id int primary key, code text unique, kind int references kind, check (id >= 0))"
    )
    session.execute(f"insert into item select i, 'c' || i, i % 10 from generate_series(1, {ROWS}) g(i)")
    session.execute("create index item_kind on item (kind)")
    session.execute("alter table item add column more int default 7")
    session.execute("update item set more = 8 where id <= 3")
    yield session
    session.close()


def look(session: Session) -> list[tuple[object, ...]]:
    return list(session.execute("select count(*), sum(id), sum(more), sum(kind) from item").rows)


def refused(session: Session, sql: str) -> str:
    with pytest.raises(errors.Error) as caught:
        session.execute(sql)
    return caught.value.sqlstate


def judge(node: Node, session: Session, expected: list[tuple[object, ...]]) -> None:
    assert look(session) == expected
    assert list(session.execute("select id from item where code = 'c77'").rows) == [(77,)]
    assert refused(session, "insert into item values (9001, 'c77', 1)") == "23505"
    assert refused(session, "insert into item values (-1, 'x', 1)") == "23514"
    assert refused(session, "insert into item values (9001, 'x', 99)") == "23503"
    session.execute("insert into item values (9001, 'new', 1)")
    assert list(session.execute("select more from item where id = 9001").rows) == [(7,)]
    session.execute("delete from item where id = 9001")
    assert not inspect(node, rows_max=1_000).anomalies


def test_a_table_comes_back_with_all_that_it_had(node: Node, session: Session):
    before = look(session)
    session.execute("drop table item")
    assert refused(session, "select * from item") == "42P01"
    planned = [line for (line,) in session.execute("explain (ddl) undrop table item").rows]
    assert any("metadata only" in line for line in planned)
    session.execute("undrop table item")
    judge(node, session, before)
    assert any("NOT VALID" in notice for notice in session.notices)
    session.execute("alter table item validate constraint item_kind_fkey")
    # And once more.
    session.execute("drop table item")
    session.execute("undrop table item")
    judge(node, session, before)


def test_a_transaction_in_flight_does_not_miss_the_table_that_is_back_when_it_commits(node: Node, session: Session):
    session.execute("create table t (id int primary key, a int)")
    session.execute("create index on t (a)")
    session.execute("insert into t values (1, 1), (2, 2)")
    with closing(Session(node)) as writer:
        # DROP would wait for a writer.
        writer.execute("begin isolation level repeatable read")
        writer.execute("select * from t")
        session.execute("drop table t")
        session.execute("undrop table t")
        writer.execute("update t set a = 10 where id = 1")
        writer.execute("insert into t values (3, 3)")
        writer.execute("commit")
    assert session.execute("select id, a from t order by id").rows == [(1, 10), (2, 2), (3, 3)]
    assert inspect(node).anomalies == []


def test_another_node_brings_it_back(node: Node, place: Place, session: Session):
    before = look(session)
    session.execute("drop table item")
    other = open_node(place.data, place.catalog, name="there")
    there = Session(other)
    try:
        there.execute("undrop table item")
        judge(other, there, before)
        judge(node, session, before)
    finally:
        there.close()
        other.close()


def test_in_a_transaction_block(node: Node, session: Session):
    before = look(session)
    session.execute("begin")
    session.execute("drop table item")
    session.execute("undrop table item")
    assert look(session) == before
    session.execute("commit")
    session.execute("drop table item")
    session.execute("begin")
    session.execute("undrop table item")
    assert look(session) == before
    session.execute("insert into item values (9001, 'inside', 1)")
    session.execute("rollback")
    assert refused(session, "select * from item") == "42P01"
    session.execute("begin; undrop table item; delete from item where id = 1; commit")
    session.execute("insert into item values (1, 'c1', 1, 8)")
    judge(node, session, before)


def test_the_name_must_be_free_and_the_last_one_comes_back(node: Node, session: Session):
    session.execute("drop table item")
    session.execute("create table item (id int primary key, other text)")
    assert refused(session, "undrop table item") == "42P07"
    session.execute("insert into item values (1, 'second')")
    session.execute("drop table item")
    session.execute("undrop table item")
    assert list(session.execute("select * from item").rows) == [(1, "second")]


def test_history_shows_when_it_was_gone(session: Session):
    before = look(session)
    session.execute("drop table item")
    gone = session.node.epoch.applied
    session.execute("undrop table item")
    session.execute(f"set seachange.as_of = '{gone}'")
    assert refused(session, "select * from item") == "42P01"
    session.execute("set seachange.as_of = ''")
    assert look(session) == before


def is_gone(node: Node, ids: list[IndexId]) -> bool:
    """Nothing of the indexes is left in the catalog, nor files that nothing refers to."""
    catalog, head = node.parts.catalog, node.epoch.catch_up()
    contents = [catalog.index_contents(node.epoch.epoch, id_, head) for id_ in ids]
    live = {
        member.segment.id
        for table in node.epoch.schemas.newest.by_id.values()
        for index in table.indexes
        for found in [catalog.index_contents(node.epoch.epoch, index.id, head)]
        for member in (found.generation.members if found.generation is not None else ())
    }
    files = len(node.parts.files.names())
    # Inline batches go with their partition of the log, on PostgreSQL later than the rest.
    empty = all(found.generation is None and not any(d.segments for d in found.deltas) for found in contents)
    return empty and not catalog.dropped() and files == len(live)


@pytest.mark.parametrize("cut", ["", "gc.collected", "gc.deleted", "gc.forgotten"])
def test_after_the_retention_nothing_is_left_of_it(node: Node, place: Place, session: Session, cut: str):
    """Also if the collector dies on its way: the next one continues."""
    ids = [index.id for index in node.epoch.schemas.newest.within().by_name["public", "item"].indexes]
    session.execute("drop table item")
    node.collect_garbage(retention_us=3_600_000_000)
    assert not is_gone(node, ids)

    def die() -> None:
        node.parts.catalog.end_node(node.epoch.epoch)
        raise errors.InputOutputError(action="delete", file="a segment", detail="cut")

    if cut:
        FAULTS.arm(cut, die)
        with pytest.raises(errors.Error):
            node.collect_garbage(retention_us=0)
        FAULTS.disarm()
    other = open_node(place.data, place.catalog, name="next")
    try:
        other.collect_garbage(retention_us=0)
        other.collect_garbage(retention_us=0)
        assert is_gone(other, ids)
    finally:
        other.close()
    assert refused(session, "undrop table item") == "42P01"
    session.execute("create table item (id int primary key)")
    assert not inspect(node).anomalies


def test_what_is_collected_meanwhile_does_not_come_back(node: Node, session: Session):
    """The collection comes between the plan and the commit."""
    session.execute("drop table item")

    def collect() -> None:
        FAULTS.disarm()
        session.node.parts.catalog.collect(node.epoch.epoch, 0)

    other = open_node(node.parts.data, node.parts.catalog.url if "postgres" in node.parts.catalog.url else None)
    there = Session(other)
    try:
        # The open transaction of this node holds history; that of the other, at the head, does not.
        node.follow()
        node.beat()
        FAULTS.arm("commit.queued", collect)
        assert refused(there, "undrop table item") == "42P01"
    finally:
        FAULTS.disarm()
        there.close()
        other.close()


def test_rows_do_not_come_back_with_values_that_their_type_has_lost(session: Session):
    session.execute("create type mood as enum ('sad', 'ok', 'happy')")
    session.execute("alter type mood drop value 'happy'")
    session.execute("create table moody (id int primary key, m mood)")
    session.execute("insert into moody values (1, 'sad')")
    session.execute("drop table moody")
    session.execute("alter type mood drop value 'sad'")
    with pytest.raises(errors.FeatureNotSupported):
        session.execute("undrop table moody")
    session.execute("alter type mood add value 'sad'")
    session.execute("undrop table moody")
    assert list(session.execute("select * from moody").rows) == [(1, "sad")]
    session.execute("drop table moody")
    session.execute("drop type mood")


def test_undropped_table_without_owner_belongs_to_the_role_that_restores_it(session: Session):
    for statement in (
        "create role leaver",
        "create role reader",
        "create table legacy (id int)",
        "alter table legacy owner to leaver",
        "grant select on legacy to reader",
        "drop table legacy",
        "drop role leaver, reader",
        "undrop table legacy",
    ):
        session.execute(statement)
    assert list(session.execute("select tableowner from pg_tables where tablename = 'legacy'").rows) == [("seachange",)]
    shown = session.execute("select grantee from information_schema.role_table_grants where table_name = 'legacy'")
    assert {grantee for (grantee,) in shown.rows} <= {"seachange"}
    session.execute("drop table legacy")
