"""seachange.feed: the changes of tables, read from the log."""

import datetime as dt
from contextlib import closing
from typing import Any

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.blocks import Sessions
from tests.engine.feed_copy import as_of, read_events

SETUP = ("create table t (id int primary key, a text)", "create table u (id int primary key, n int)")
TYPES = {
    "bool": "true",
    "smallint": "-3",
    "bigint": "9007199254740993",
    "real": "0.1",
    "double precision": "'NaN'",
    "numeric": "12.50",
    "numeric(8,3)": "12.5",
    "text": "'quote \" and \\ and é'",
    "varchar(4)": "'abcd'",
    "bytea": "'\\x00ff'",
    "date": "'2024-02-29'",
    "time": "'10:00:00.5'",
    "timestamp": "'2024-01-01 10:00:00.25'",
    "timestamptz": "'2024-01-01 10:00:00+02'",
    "interval": "'1 year 2 days 3 hours'",
    "uuid": "'00000000-0000-0000-0000-00000000000a'",
    "jsonb": '\'{"bb": 1.5, "a": [null]}\'',
    "inet": "'10.0.0.1/8'",
    "int[]": "'{1,NULL}'",
    "text[]": "'{a,\"b c\"}'",
    "timestamp[]": "'{2024-01-01}'",
    "mood": "'ok'",
    "mood[]": "'{ok,sad}'",
}


def head(session: Session) -> int:
    return session.node.epoch.catch_up()


def run(session: Session, *statements: str) -> None:
    for statement in statements:
        session.execute(statement)


def shown(session: Session, names: list[str], since: int) -> list[tuple[Any, ...]]:
    """The events without their positions; a schema by the names of its columns."""
    found = session.execute(
        "select relation, op, before ->> 'id', after ->> 'id', jsonb_path_query_array(schema, '$.columns[*].name')"
        " from seachange.feed($1, since => $2)",
        [names, since],
    )
    return [tuple(value for value in row if value is not None) for row in found.rows]


def refused(session: Session, sql: str, *values: object) -> errors.Error:
    with pytest.raises(errors.Error) as caught:
        session.execute(sql, list(values))
    return caught.value


@pytest.mark.parametrize("count", [1, 30], ids=["inline", "files"])
def test_documents_are_those_of_to_jsonb(sessions: Sessions, count: int):
    session, _ = sessions
    session.node.parts.inline_rows_max = 10
    columns = ", ".join(f'"c {number}" {type_}' for number, type_ in enumerate(TYPES))
    run(session, "create type mood as enum ('sad', 'ok')", f"create table typed (id int primary key, {columns})")
    since = head(session)
    values = ", ".join(f"{value}::{type_}" for type_, value in TYPES.items())
    session.execute(f"insert into typed select i, {values} from generate_series(1, {count}) g (i)")
    session.execute(f"insert into typed (id) values ({count + 1})")
    run(session, "alter type mood rename value 'ok' to 'fine'", "update typed set id = -id")
    wanted = {row[0] for row in session.execute("select cast(to_jsonb(x) as text) from typed x").rows}
    events = read_events(session, ["typed"], since, head(session))
    inserted = [event["after"] for event in events if event["op"] == "insert"]
    assert len(inserted) == 2 * (count + 1)
    assert set(inserted[count + 1 :]) == wanted
    assert {event["before"] for event in events if event["op"] == "delete"} == {
        text.replace('"id": -', '"id": ') for text in wanted
    }


@pytest.mark.either_catalog
def test_documents_in_rows_keep_their_numbers(sessions: Sessions):
    session, _ = sessions
    run(session, "create table d (id int primary key, j json, b jsonb)")
    since = head(session)
    session.execute("""insert into d values (1, '{"b" : 1.50,"a":2}', '{"n": 1.50}')""")
    (event,) = read_events(session, ["d"], since, head(session))
    assert event["after"] == '{"b": {"n": 1.50}, "j": {"a": 2, "b": 1.50}, "id": 1}'


def test_commits_are_in_order_and_whole(sessions: Sessions):
    session, other = sessions
    since = head(session)
    run(session, "begin", "insert into u values (1, 1)", "insert into t values (1, 'x'), (2, 'y')")
    other.execute("insert into t values (9, 'z')")
    run(session, "update t set a = 'w' where id = 1", "delete from u", "commit", "delete from t where id = 2")
    assert shown(session, ["u", "t"], since) == [
        ("public.t", "insert", "9"),
        ("public.t", "insert", "1"),
        ("public.t", "insert", "2"),
        ("public.t", "delete", "2"),
    ]
    events = read_events(session, ["public.t"], since, head(session))
    assert [(e["seq"] - since, e["ordinal"]) for e in events] == [(1, 1), (2, 1), (2, 2), (3, 1)]
    assert [e["committed_at"] for e in events] == sorted(e["committed_at"] for e in events)


def test_changes_of_one_row_have_the_row_before(sessions: Sessions):
    session, _ = sessions
    since = head(session)
    run(session, "insert into t values (1, 'a')", "update t set a = 'b'", "update t set a = 'c'", "delete from t")
    found = session.execute(
        "select op, before ->> 'a', after ->> 'a' from seachange.feed('{t}', $1) where op <> 'schema'", [since]
    )
    assert list(found.rows) == [
        ("insert", None, "a"),
        ("update", "a", "b"),
        ("update", "b", "c"),
        ("delete", "c", None),
    ]


def test_work_that_changes_no_row_is_not_shown(sessions: Sessions):
    session, other = sessions
    session.node.parts.inline_rows_max = 10
    session.execute("insert into t select i, 'r' || i from generate_series(1, 50) g (i)")
    session.execute("update t set a = 'x' where id < 5")
    since = head(session)
    run(session, "create index on t (a)", "create index concurrently on t (id, a)", "vacuum t", "vacuum full t")
    run(
        session,
        "alter table t add constraint c check (id > 0)",
        "comment on table t is 'x'",
        "grant select on t to public",
    )
    run(other, "vacuum full t", "alter table t alter column a set default 'd'", "drop index t_a_idx")
    assert head(session) > since
    assert shown(session, ["t", "u"], since) == []


def test_schema_changes_are_events_at_their_places(sessions: Sessions):
    session, _ = sessions
    session.execute("insert into t values (1, '7')")
    since = head(session)
    run(session, "alter table t add column b int default 5", "insert into t values (2, '8')")
    run(session, "alter table t alter column a type int using a::int", "update t set b = 6 where id = 1")
    run(session, "begin", "alter table t rename to v", "insert into v values (3, 9)", "commit")
    found = read_events(session, ["v"], since, head(session))
    assert [(e["relation"], e["op"], e["before"], e["after"]) for e in found] == [
        ("public.t", "schema", None, None),
        ("public.t", "insert", None, '{"a": "8", "b": 5, "id": 2}'),
        ("public.t", "schema", None, None),
        ("public.t", "update", '{"a": 7, "b": 5, "id": 1}', '{"a": 7, "b": 6, "id": 1}'),
        ("public.v", "schema", None, None),
        ("public.v", "insert", None, '{"a": 9, "b": 5, "id": 3}'),
    ]
    schemas = session.execute(
        "select schema ->> 'table', c ->> 'name', c ->> 'type', c ->> 'rows', c ->> 'value'"
        " from seachange.feed('{v}', since => $1) f, jsonb_array_elements(f.schema -> 'columns') c"
        " where op = 'schema' and c ->> 'rows' <> 'kept'",
        [since],
    )
    assert list(schemas.rows) == [("t", "b", "integer", "constant", "5"), ("t", "a", "integer", "computed", None)]


def test_rows_go_with_truncate_and_come_with_undrop(sessions: Sessions):
    session, _ = sessions
    run(session, "insert into t values (1, 'a'), (2, 'b')")
    since = head(session)
    run(session, "begin", "truncate t", "insert into t values (3, 'c')", "commit")
    assert shown(session, ["t"], since) == [
        ("public.t", "delete", "1"),
        ("public.t", "delete", "2"),
        ("public.t", "insert", "3"),
    ]
    since = head(session)
    run(session, "drop table t", "undrop table t")
    events = read_events(session, ["t"], since, head(session))
    assert [(e["op"], e["schema"] == "null", e["after"]) for e in events] == [
        ("schema", True, None),
        ("schema", False, None),
        ("insert", False, '{"a": "c", "id": 3}'),
    ]


def test_span_is_of_sequences_or_moments(sessions: Sessions):
    session, _ = sessions
    session.execute("insert into t values (1, 'a')")
    first = read_events(session, ["t"], 0, head(session))[-1]
    session.execute("insert into t values (2, 'b')")
    moment = first["committed_at"]
    assert shown(session, ["t"], moment) == [("public.t", "insert", "2")]
    assert shown(session, ["t"], moment - dt.timedelta(microseconds=1))[-2:] == [
        ("public.t", "insert", "1"),
        ("public.t", "insert", "2"),
    ]
    until = session.execute("select count(*) from seachange.feed('{t}', until => $1)", [first["seq"]])
    assert until.rows[0][0] == len(read_events(session, ["t"], 0, first["seq"]))
    with as_of(session, first["seq"]):
        assert session.execute("select max(seq) from seachange.feed(tables => array['t'])").rows == [(first["seq"],)]


def test_snapshot_is_that_of_the_transaction(sessions: Sessions):
    session, other = sessions
    since = head(session)
    run(session, "begin isolation level repeatable read", "select * from t")
    other.execute("insert into t values (1, 'other')")
    session.execute("insert into t values (2, 'own')")
    assert shown(session, ["t"], since) == []
    session.execute("rollback")
    assert shown(session, ["t"], since) == [("public.t", "insert", "1")]


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("feed('{nowhere}')", "42P01"),
        ("feed('{w}')", "42809"),
        ("feed()", "42883"),
        ("feed('{t}', 0, 1, 2)", "42883"),
        ("feed('{t}', since => 0, since => 1)", "42883"),
        ("feed('{t}', beyond => 0)", "42883"),
        ("feed('{}')", "22023"),
        ("feed('{t}', since => 'soon')", "22023"),
        ("feed('{t}', since => -1)", "22023"),
        ("feed('{t}', since => (select 1))", "0A000"),
        ("feed", "42P01"),
    ],
)
@pytest.mark.either_catalog
def test_wrong_calls_are_refused(sessions: Sessions, call: str, sqlstate: str):
    session, _ = sessions
    session.execute("create view w as select * from t")
    assert refused(session, f"select * from seachange.{call}").sqlstate == sqlstate


@pytest.mark.either_catalog
def test_feeds_are_sources_like_others(sessions: Sessions):
    session, _ = sessions
    session.execute("insert into t values (1, 'a')")
    assert session.execute("explain select * from seachange.feed('{t}')").rows
    twice = "select a.op, b.seq from seachange.feed('{t}') a join seachange.feed('{t}', since => 2) b using (seq)"
    assert len(session.execute(twice).rows) == 1
    assert session.execute("with f as (select op from seachange.feed('{t}')) select count(*) from f").rows == [(2,)]
    run(session, "prepare p as select count(*) from seachange.feed($1, since => $2)")
    assert session.execute("execute p('{t}', '0')").rows == [(2,)]
    run(session, "create table kept as select * from seachange.feed('{t}')")
    assert session.execute("select op, after from kept order by seq").rows == [
        ("schema", None),
        ("insert", '{"a": "a", "id": 1}'),
    ]
    run(session, "begin", "declare c cursor for select op from seachange.feed('{t}')")
    assert session.execute("fetch 1 from c").rows == [("schema",)]
    assert session.execute("fetch 2 from c").rows == [("insert",)]


@pytest.mark.either_catalog
def test_role_needs_select_on_every_table(sessions: Sessions, nodes: tuple[Node, Node]):
    session, _ = sessions
    run(session, "create role reader login", "grant usage on schema public to reader", "grant select on t to reader")
    with closing(Session(nodes[0], user="reader")) as reader:
        assert reader.execute("select count(*) from seachange.feed('{t}') where op = 'insert'").rows == [(0,)]
        assert refused(reader, "select * from seachange.feed('{t,u}')").sqlstate == "42501"


def test_what_is_no_longer_kept_is_an_error(sessions: Sessions, nodes: tuple[Node, Node]):
    session, _ = sessions
    run(session, "insert into t values (1, 'a')")
    since = head(session)
    run(session, "insert into t values (2, 'b')", "vacuum full t")
    for node in nodes:
        node.beat()
        node.collect_garbage(retention_us=0)
    floor = nodes[0].parts.catalog.floor()
    assert floor > since
    lost = refused(session, "select * from seachange.feed('{t}', $1)", since)
    assert (lost.sqlstate, bool(lost.hint)) == ("72000", True)
    session.execute("insert into t values (3, 'c')")
    assert shown(session, ["t"], floor)[-1] == ("public.t", "insert", "3")


@pytest.mark.either_catalog
def test_long_feeds_come_in_order_and_in_parts(sessions: Sessions):
    session, _ = sessions
    session.execute("insert into t select i, 'r' || i from generate_series(1, 30000) g (i)")
    session.execute("update t set a = 'x' where id % 3 = 0")
    run(session, *(f"insert into t values ({i}, 'n')" for i in range(40_000, 40_040)))
    found = session.execute("select seq, ordinal from seachange.feed('{t}')").rows
    assert list(found) == sorted(found)
    assert len(found) == 1 + 30_000 + 10_000 + 40
    assert session.execute("select op from seachange.feed('{t}') limit 2").rows == [("schema",), ("insert",)]
