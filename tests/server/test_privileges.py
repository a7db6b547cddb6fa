"""A role without privileges, on every path to what it may not see or do."""

import psycopg
import pytest

from tests.support.serving import HOST, serving
from tests.support.wire import SYNC, Wire, bind, describe, execute, parse, query

# What a guest tries: each is refused for want of a privilege.
REFUSED = (
    "select * from secret",
    "select (select count(*) from secret)",
    "with s as (select * from secret) select 1",
    "select * from peek",
    "select * from secret for update",
    "explain select * from secret",
    "explain analyze select * from secret",
    "copy secret to stdout",
    "copy (select word from secret) to stdout",
    "copy secret from stdin",
    "begin; declare c cursor for select * from secret",
    "prepare p as select * from secret; execute p",
    "create temporary table t as select * from secret",
    "insert into secret values (2, 'y')",
    "update secret set word = 'z'",
    "delete from secret",
    "truncate secret",
    "select nextval('counter')",
    "alter table secret add column q int",
    "create index on secret (word)",
    "drop table secret",
    "explain (ddl) alter table secret add column q int",
    "explain (ddl, deps) drop table secret",
    "comment on table secret is 'mine'",
    "grant select on secret to guest",
    "alter role guest superuser",
    "create role friend",
    "select seachange.cancel_job(1)",
    # Who one is, and what concerns others or the machine.
    "set role seachange",
    "set session authorization seachange",
    "select set_config('role', 'seachange', false)",
    "select set_config('session_authorization', 'seachange', false)",
    "set seachange.retention = 0",
    "set seachange.process_growth_limit = 0",
    "set seachange.spark.python = '/bin/sh'",
    "set seachange.spark.options = 'spark.executor.extraJavaOptions=-version'",
    "select set_config('seachange.spark.python', '/bin/sh', false)",
    "alter role guest set seachange.spark.python = '/bin/sh'",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as served:
        with psycopg.connect(served.url, autocommit=True) as connection:
            connection.execute("create table secret (id int primary key, word text)")
            connection.execute("insert into secret values (1, 'x')")
            connection.execute("create view peek as select * from secret")
            connection.execute("create sequence counter")
            connection.execute("create role guest login")
        yield served


@pytest.mark.parametrize("text", REFUSED)
def test_what_was_not_granted_is_refused(served, text):
    with Wire(served.port, user="guest") as guest:
        assert guest.code(query(text)) == "42501"


@pytest.mark.parametrize("told", [describe("S"), bind() + execute(), bind() + describe()])
def test_the_extended_protocol_has_no_other_way(served, told):
    with Wire(served.port, user="guest") as guest:
        assert guest.code(parse("select * from secret"), told, SYNC) == "42501"


@pytest.mark.parametrize(
    "setting", ["role=seachange", "session_authorization=seachange", "seachange.spark.python=/bin/sh"]
)
def test_a_start_up_packet_asks_as_well(served, setting):
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(f"postgresql://guest@{HOST}:{served.port}/seachange", options=f"-c {setting}")


def test_a_superuser_may(served):
    with Wire(served.port) as root:
        for text in ("set seachange.retention = '1 day'", "set seachange.spark.python = ''", "set role guest"):
            assert root.code(query(text)) is None
        # As the guest that it is now, it may not; as itself it may be again.
        assert root.code(query("set seachange.retention = '2 days'")) == "42501"
        assert root.code(query("reset role")) is None
        assert root.code(query("set seachange.retention = '1 day'")) is None


def test_what_jobs_say_of_rows_is_for_superusers(served):
    with Wire(served.port) as root, Wire(served.port, user="guest") as guest:
        root.round(query("create table pairs (a int, b text); insert into pairs values (1, 'word'), (2, 'word')"))
        assert root.code(query("create unique index on pairs (b)")) == "23505"
        told = "select statement, error from seachange.jobs order by id desc limit 1"
        assert b"word" in (root.rows(told)[0][1] or b"")
        assert guest.rows(told) == [[b"<insufficient privilege>"] * 2]
        assert {row[0] for row in guest.rows("select event from seachange.events")} == {b"<insufficient privilege>"}
