"""CREATE FEED: a durable position, the log that it keeps, and its end."""

from contextlib import closing
from typing import Any

import pytest

from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.blocks import Sessions, refused
from tests.engine.feed_copy import read_events

SETUP = ("create table t (id int primary key, a text)", "create table u (id int primary key)")


def feeds(session: Session) -> list[tuple[Any, ...]]:
    columns = "name, owner, tables, position, lag_rows, lag_bytes > 0, lag_seconds > 0, ended is not null"
    return list(session.execute(f"select {columns} from seachange.feeds").rows)


def collect(nodes: tuple[Node, Node]) -> None:
    for node in nodes:
        node.beat()
        node.collect_garbage(retention_us=0)


def test_the_log_is_kept_until_it_is_acknowledged(sessions: Sessions, nodes: tuple[Node, Node]):
    session, other = sessions
    since = nodes[0].epoch.catch_up()
    session.execute("create feed f for table t, public.u")
    session.execute("insert into t values (1, 'a'), (2, 'b')")
    other.execute("insert into u values (1)")
    for table in ("t", "u"):
        session.execute(f"vacuum full {table}")
    assert feeds(other) == [("f", "seachange", "public.t, public.u", since, 3, True, True, False)]
    collect(nodes)
    head = nodes[0].epoch.catch_up()
    assert nodes[0].parts.catalog.floor() <= since
    assert [e["after"] for e in read_events(other, ["t", "u"], since, head)] == [
        '{"a": "a", "id": 1}',
        '{"a": "b", "id": 2}',
        '{"id": 1}',
    ]
    other.execute(f"call seachange.advance_feed('f', '{head}')")
    other.execute(f"call seachange.advance_feed('f', '{since}')")
    assert feeds(session) == [("f", "seachange", "public.t, public.u", head, 0, False, False, False)]
    collect(nodes)
    assert nodes[0].parts.catalog.floor() > since


def test_positions_are_sequences_or_moments(sessions: Sessions):
    session, _ = sessions
    session.execute("insert into t values (1, 'a')")
    event = read_events(session, ["t"], 0, 1 << 40)[-1]
    session.execute("insert into t values (2, 'b')")
    head = session.node.epoch.catch_up()
    session.execute(f"create feed number for table t from {event['seq']}")
    session.execute(f"create feed moment for table t from '{event['committed_at'].isoformat()}'")
    session.execute("create feed now for table t")
    session.execute("create feed later for table t from 1000000")
    found = session.execute("select name, position from seachange.feeds").rows
    assert sorted(found) == [("later", head), ("moment", event["seq"]), ("now", head), ("number", event["seq"])]


def test_a_feed_beyond_its_limit_ends(sessions: Sessions, nodes: tuple[Node, Node]):
    session, _ = sessions
    since = nodes[0].epoch.catch_up()
    session.execute("create feed f for table t")
    nodes[0].parts.settings["seachange.feed_limit"] = "1kB"
    session.execute("insert into t values (1, 'a')")
    nodes[0].maintenance.collect(nodes[0].epoch)
    assert feeds(session)[0][-1] is False
    session.execute("insert into t select i, repeat('x', 100) from generate_series(2, 30) g (i)")
    session.execute("vacuum full t")
    nodes[0].maintenance.collect(nodes[0].epoch)
    assert feeds(session)[0][-1] is True
    collect(nodes)
    assert nodes[0].parts.catalog.floor() > since
    with refused("72000"):
        session.execute("call seachange.advance_feed('f', '1')")
    with refused("72000"):
        session.execute(f"create feed g for table t from {since}")
    session.execute("drop feed f")
    assert feeds(session) == []


@pytest.mark.either_catalog
@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("create feed f for table t", "42710"),
        ("create feed g for table nowhere", "42P01"),
        ("create feed g for table w", "42809"),
        ("create feed g for table t from 'soon'", "22023"),
        ("create feed g for t", "42601"),
        ("drop feed g", "42704"),
        ("call seachange.advance_feed('g', '1')", "42704"),
        ("begin; create feed g for table t", "25001"),
    ],
)
def test_wrong_statements_are_refused(sessions: Sessions, sql: str, sqlstate: str):
    session, _ = sessions
    session.execute("create view w as select * from t")
    session.execute("create feed f for table t")
    with refused(sqlstate):
        for statement in sql.split("; "):
            session.execute(statement)


@pytest.mark.either_catalog
def test_feeds_belong_to_roles_and_databases(sessions: Sessions, nodes: tuple[Node, Node]):
    session, _ = sessions
    for statement in ("create role reader login", "create role stranger login", "grant select on t to reader"):
        session.execute(statement)
    session.execute("create database elsewhere")
    with closing(Session(nodes[0], user="reader")) as reader, closing(Session(nodes[0], user="stranger")) as stranger:
        with refused("42501"):
            reader.execute("create feed f for table u")
        reader.execute("create feed f for table t")
        assert [feed[:2] for feed in feeds(reader)] == [("f", "reader")]
        assert feeds(stranger) == []
        for statement in ("drop feed f", "call seachange.advance_feed('f', '1')"):
            with refused("42501"):
                stranger.execute(statement)
        with closing(Session(nodes[0], database="elsewhere")) as elsewhere:
            elsewhere.execute("drop feed if exists f")
            assert feeds(elsewhere) == []
        reader.execute("drop feed f")
    assert feeds(session) == []
