"""Every way to a table asks for privileges: before a GRANT, with it, and after the REVOKE, in one session."""

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import seachange
from seachange import errors

SETUP = """
create table t (id int primary key, v int);
insert into t values (1, 1), (2, 2);
create sequence q;
create view roots as select id, v from t;
create schema own;
create role ann login;
grant all on schema own to ann;
"""


@dataclass(frozen=True)
class Way:
    """What is granted, and what it is needed for: a statement, or something else that a connection does."""

    granted: str
    run: str | Callable[[seachange.Connection], object]

    def go(self, connection: seachange.Connection) -> object:
        return connection.execute(self.run) if isinstance(self.run, str) else self.run(connection)


def _cursor(connection: seachange.Connection) -> None:
    connection.execute("begin")
    try:
        connection.execute("declare c cursor for select * from t")
        assert len(connection.execute("fetch all from c").fetchall()) == 2
    finally:
        connection.execute("rollback")


def _prepared(connection: seachange.Connection) -> None:
    if not connection.session.prepared.has("kept"):
        connection.execute("prepare kept as select * from t where id = $1")
    connection.execute("execute kept (1)")


def _copy_out(connection: seachange.Connection) -> None:
    connection.copy_to("select * from t", io.StringIO())


def _copy_in(connection: seachange.Connection) -> None:
    connection.execute("begin")
    try:
        connection.copy_from("t", io.StringIO("7,7\n"))
    finally:
        connection.execute("rollback")


def _load(connection: seachange.Connection) -> None:
    connection.execute("begin")
    try:
        connection.load_arrow("t", pa.table({"id": [8], "v": [8]}))
    finally:
        connection.execute("rollback")


WAYS = {
    "a scan": Way("select on t", "select * from t"),
    "a look-up by key": Way("select on t", "select v from t where id = 1"),
    "an aggregate": Way("select on t", "select count(*) from t where v > 0"),
    "a subquery": Way("select on t", "select 1 where exists (select 1 from t where v = 1)"),
    "a WITH query": Way("select on t", "with w as (select * from t) select * from w"),
    "EXPLAIN": Way("select on t", "explain select * from t"),
    "EXPLAIN of a look-up": Way("select on t", "explain select v from t where id = 1"),
    "EXPLAIN ANALYZE": Way("select on t", "explain analyze select * from t"),
    "EXPLAIN of an UPDATE": Way("update on t", "explain update t set v = 1"),
    "EXPLAIN of an INSERT": Way("insert on t", "explain insert into t values (9, 9)"),
    "FOR UPDATE": Way("select, update on t", "select * from t where id = 1 for update"),
    "a cursor": Way("select on t", _cursor),
    "a prepared statement": Way("select on t", _prepared),
    "COPY out": Way("select on t", _copy_out),
    "COPY in": Way("insert on t", _copy_in),
    "an Arrow table": Way("insert on t", _load),
    "INSERT": Way("insert on t", "insert into t values (3, 3) on conflict do nothing"),
    "INSERT ... RETURNING": Way(
        "insert, select on t", "insert into t values (1, 0) on conflict do nothing returning v"
    ),
    "ON CONFLICT DO UPDATE": Way(
        "insert, select, update on t", "insert into t values (1, 1) on conflict (id) do update set v = excluded.v"
    ),
    "UPDATE": Way("update, select on t", "update t set v = 5 where id = 1"),
    "DELETE": Way("delete, select on t", "delete from t where id = 99"),
    "TRUNCATE in EXPLAIN (DDL)": Way("truncate on t", "explain (ddl) truncate t"),
    "CREATE TABLE AS": Way("select on t", "create table own.copied as select * from t"),
    "INSERT ... SELECT": Way("select on t", "insert into own.mine select id from t"),
    "REFERENCES": Way("references on t", "create table own.child (id int references t)"),
    "a view of the owner's": Way("select on roots", "select * from roots"),
    "EXPLAIN of a view": Way("select on roots", "explain select * from roots"),
    "an own view": Way("select on t", "select * from own.seen"),
    "nextval": Way("usage on sequence q", "select nextval('q')"),
    "setval": Way("update on sequence q", "select setval('q', 5)"),
    "a sequence as a relation": Way("select on sequence q", "select last_value from q"),
}
# What no grant allows.
OWNERS = [
    "drop table t",
    "alter table t add column x int",
    "create index on t (v)",
    "comment on table t is 'x'",
    "explain (ddl) drop table t",
    "explain (ddl) alter table t add column x int",
    "alter table t owner to ann",
    "grant select on t to public",
    "alter sequence q restart",
    "create or replace view roots as select id, v from t",
    "create table taken (id int)",
]


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[tuple[seachange.Connection, seachange.Connection]]:
    with ExitStack() as stack:
        root = stack.enter_context(closing(seachange.connect(tmp_path, autocommit=True)))
        root.execute(SETUP)
        ann = stack.enter_context(closing(seachange.connect(tmp_path, user="ann", autocommit=True)))
        yield root, ann


@pytest.mark.parametrize("name", WAYS)
def test_a_way_is_open_with_the_grant_alone(sessions, name: str):
    root, ann = sessions
    way = WAYS[name]
    root.execute("create table own.mine (id int)")
    root.execute("alter table own.mine owner to ann")
    root.execute("create view own.seen as select id from t")
    root.execute("alter view own.seen owner to ann")
    for _ in range(2):
        with pytest.raises(errors.InsufficientPrivilege):
            way.go(ann)
        root.execute(f"grant {way.granted} to ann")
        way.go(ann)
        root.execute(f"revoke {way.granted} from ann")
        ann.execute("drop table if exists own.copied, own.child")
    with pytest.raises(errors.InsufficientPrivilege):
        way.go(ann)


@pytest.mark.parametrize("statement", OWNERS)
def test_some_are_for_owners(sessions, statement: str):
    root, ann = sessions
    root.execute("grant all on t to ann")
    root.execute("grant all on roots to ann")
    with pytest.raises(errors.InsufficientPrivilege):
        ann.execute(statement)


def test_objects_of_other_roles_are_listed_if_accessible(sessions):
    root, ann = sessions
    views = (
        "select distinct table_name from seachange.descriptors",
        "select distinct table_name from seachange.layouts",
        "select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
    )
    root.execute("create index on t (v)")
    for view in views:
        assert ann.execute(view).fetchall() == []
    root.execute("grant select on t to ann")
    for view in views:
        assert ann.execute(view).fetchall() == [("t",)]
