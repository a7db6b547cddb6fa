"""A look-up by key that runs without a transaction sees what one would: names, rights, rows and locks of the head."""

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.look_ups import LookUps
from seachange.engine.session.session import Session
from seachange.runtime.nonblocking import WouldWait, non_blocking
from seachange.sql.run.execute import prepare
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

(BY_KEY,) = prepare("select n from t where id = $1")


class Reader:
    """A session of which it is known how often it answered without a transaction."""

    def __init__(self, node: Node, user: str = "seachange") -> None:
        self.session = Session(node, user)

    @property
    def look_ups(self) -> LookUps:
        return self.session._look_ups

    def read(self, key: object = 1) -> list[tuple[object, ...]]:
        return list(self.session.execute_prepared(BY_KEY, (key,)).rows)

    def warm(self) -> None:
        self.read()
        assert BY_KEY in self.look_ups._known


@pytest.fixture
def writer(node: Node) -> Iterator[Session]:
    session = Session(node)
    session.execute("create table t (id int primary key, n int); insert into t values (1, 10), (2, 20)")
    yield session
    session.close()


@pytest.fixture
def reader(node: Node, writer: Session) -> Iterator[Reader]:
    reader = Reader(node)
    reader.warm()
    yield reader
    reader.session.close()


def test_rows_of_every_node_are_seen_at_once(reader: Reader, writer: Session, other: Node):
    distant = Session(other)
    for number in range(5):
        (distant if number % 2 else writer).execute(f"update t set n = {number} where id = 1")
        assert reader.read() == [(number,)]
    distant.execute("delete from t where id = 1")
    assert reader.read() == []
    assert reader.read(None) == []
    assert reader.read(2) == [(20,)]
    with pytest.raises(errors.WrongParameterCount):
        reader.session.execute_prepared(BY_KEY, ())
    distant.close()


def test_right_that_another_node_revokes_is_gone(node: Node, writer: Session, other: Node):
    writer.execute("create role amy login; grant select on t to amy")
    reader, distant = Reader(node, "amy"), Session(other)
    reader.warm()
    assert reader.read() == [(10,)]
    distant.execute("revoke select on t from amy")
    with pytest.raises(errors.InsufficientPrivilege):
        reader.read()
    distant.execute("grant select on t to amy")
    reader.warm()
    writer.execute("create role bob; grant bob to amy")
    reader.read()
    reader.session.execute("set role bob")
    with pytest.raises(errors.InsufficientPrivilege):
        reader.read()
    reader.session.close()
    distant.close()


def test_name_means_what_it_means_now(reader: Reader, writer: Session):
    writer.execute("create schema other; create table other.t (id int primary key, n int)")
    writer.execute("insert into other.t values (1, 77)")
    reader.warm()
    reader.session.execute("set search_path = other, public")
    assert reader.read() == [(77,)]
    reader.warm()
    reader.session.execute("reset search_path")
    assert reader.read() == [(10,)]
    reader.session.execute("create temp table t (id int primary key, n int)")
    assert reader.read() == []
    reader.session.execute("drop table pg_temp.t")
    assert reader.read() == [(10,)]
    writer.execute("alter table t rename column n to m")
    with pytest.raises(errors.Error, match='column "n" does not exist'):
        reader.read()


def test_the_past_and_earlier_layouts_take_a_transaction(reader: Reader, writer: Session, node: Node):
    seq = node.statistics()["applied"]
    writer.execute("update t set n = 11 where id = 1")
    assert reader.read() == [(11,)]
    reader.session.execute(f"set seachange.as_of = '{seq}'")
    assert reader.read() == [(10,)]
    reader.session.execute("reset seachange.as_of")
    assert reader.read() == [(11,)]


def test_moments_are_shown_in_the_zone_of_the_session(node: Node, writer: Session):
    writer.execute(
        "create table m (id int primary key, at timestamptz); insert into m values (1, '2026-01-01 12:00+00')"
    )
    (by_key,) = prepare("select at from m where id = $1")
    session = Session(node)
    for zone, hour in (("UTC", 12), ("Asia/Tokyo", 21), ("UTC", 12)):
        session.execute(f"set timezone = '{zone}'")
        for _ in range(2):
            (found,) = session.execute_prepared(by_key, (1,)).rows[0]
            assert (found.hour, found) == (hour, dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC))
    session.close()


def test_look_up_waits_for_a_table_lock(reader: Reader, writer: Session):
    writer.execute("begin")
    writer.execute("lock table t in access exclusive mode")
    writer.execute("update t set n = 12 where id = 1")
    with non_blocking(), pytest.raises(WouldWait):
        reader.read()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(reader.read)
        wait_until(lambda: reader.session.node.epoch.locks.waiting or reader.session.node.epoch.shared.waits, "a wait")
        assert not waiting.done()
        writer.execute("commit")
        assert waiting.result(PATIENCE_S) == [(12,)]


def test_statements_with_constants_share_what_is_known(reader: Reader):
    for key, found in ((1, [(10,)]), (2, [(20,)]), (3, []), (1, [(10,)])):
        assert list(reader.session.execute(f"select n from t where id = {key}").rows) == found


def test_nothing_is_left_in_the_registry(reader: Reader, node: Node):
    for _ in range(3):
        reader.read()
    assert node.statistics()["open_transactions"] == 0


def test_statement_in_a_new_epoch_takes_a_transaction(reader: Reader, node: Node):
    node.parts.catalog.end_node(node.epoch.epoch)
    node.epoch.ended = True
    assert reader.read() == [(10,)]
    assert reader.read(2) == [(20,)]
