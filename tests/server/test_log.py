"""What the log of a server has of its clients, statements and schema changes, and what it does not have."""

import json
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg
import pytest

from seachange.runtime.event_log import EventLog, LogFile, LogFormat
from tests.support.serving import HOST, serving
from tests.support.workers import wait_until

SECRET = "s3cretvalue"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "shop"


@contextmanager
def logged(place, shows_literals=False):
    """A server, and the entries of its log when it has stopped."""
    entries: list[dict[str, Any]] = []
    path = place.with_name("log")
    log = EventLog(LogFile(path, 0, 0), LogFormat.JSON, shows_literals)
    with serving(place, {"seachange": "right"}) as served:
        served.node.parts.log = log
        yield served, entries
        wait_until(lambda: not served.server.client_count, "the sessions to end")
    log.close()
    entries += map(json.loads, path.read_text().splitlines())


def connect(served, user="seachange", password="right"):
    return psycopg.connect(
        host=HOST, port=served.port, user=user, password=password, dbname="seachange", autocommit=True
    )


def of(entries, event):
    return [entry for entry in entries if entry["event"] == event]


def run(connection, *texts):
    """Those that begin with ! fail."""
    for text in texts:
        with pytest.raises(psycopg.Error) if text.startswith("!") else nullcontext():
            connection.execute(text.lstrip("!").encode())


def test_logins_refusals_and_ends_of_sessions(place):
    with logged(place) as (served, entries):
        for user, password in (("seachange", "wrong"), ("stranger\n", "right")):
            with pytest.raises(psycopg.OperationalError):
                connect(served, user, password)
        with connect(served) as first, connect(served) as second:
            pid = second.info.backend_pid
            first.execute("select pg_terminate_backend(%s)", (pid,))
            with pytest.raises(psycopg.Error):
                second.execute("select 1")
    refused = of(entries, "login refused")
    assert [(entry["role"], entry["sqlstate"]) for entry in refused] == [
        ("seachange", "28P01"),
        ("stranger\n", "28P01"),
    ]
    logins = of(entries, "login")
    assert [(entry["role"], entry["by"], entry["client"]) for entry in logins] == [("seachange", "password", HOST)] * 2
    ends = {entry["session"]: entry.get("sqlstate") for entry in of(entries, "logout")}
    assert ends == {logins[0]["session"]: None, pid: "57P01"}


def test_errors_have_their_code_and_no_values(place):
    with logged(place) as (served, entries), connect(served) as connection:
        run(connection, "create table t (id int primary key, name text check (name <> 'x'))")
        run(
            connection,
            f"!select nosuch from t where name = '{SECRET}'",
            f"!insert into t values ('{SECRET}')",
            f"!select $${SECRET}$$::int -- {SECRET}",
            f"!select '{SECRET}",
            f"!selec {SECRET!r}",
            f"insert into t values (1, '{SECRET}')",
            f"!insert into t values (1, '{SECRET}')",
            f"!select cast('{SECRET}' as date)",
        )
    errors = of(entries, "error")
    assert [entry["sqlstate"] for entry in errors][:3] == ["42703", "22P02", "22P02"]
    assert errors[0]["message"] == "column ? does not exist" or "nosuch" in errors[0]["message"]
    assert errors[0]["statement"] == "select nosuch from t where name = ?"
    assert len(errors) == 7
    assert SECRET not in json.dumps(entries)


def test_literals_are_logged_on_request_and_passwords_never(place):
    with logged(place, shows_literals=True) as (served, entries), connect(served) as connection:
        run(connection, f"!select '{SECRET}'::int", "set log_min_duration_statement = 0")
        run(connection, f"create role ann password '{SECRET}word'", f"!alter role nosuch password '{SECRET}word'")
        run(connection, f"!create role ann password '{SECRET}word' '{SECRET}word'")
    (first, *_) = of(entries, "error")
    assert first["statement"] == f"select '{SECRET}'::int"
    assert SECRET in first["message"]
    assert f"{SECRET}word" not in json.dumps(entries)
    assert "create role ann password ?" in [entry["statement"] for entry in of(entries, "slow statement")]


def test_slow_statements_are_those_above_the_limit(place):
    with logged(place) as (served, entries), connect(served) as connection:
        run(connection, "create table t (id int primary key)", "set log_min_duration_statement = '1h'", "select 1")
        run(connection, "set log_min_duration_statement = 0", "insert into t values (7)")
        for _ in range(3):
            # By the paths of prepared statements, too.
            connection.execute("select id from t where id = %s", (7,), prepare=True)
        run(connection, "begin; insert into t values (8); commit", "set log_min_duration_statement = -1", "select 2")
        with pytest.raises(psycopg.Error):
            connection.execute("set log_min_duration_statement = -2")
    slow = of(entries, "slow statement")
    statements = [entry["statement"] for entry in slow]
    assert statements.count("select id from t where id = $1") == 3
    assert "insert into t values (?)" in statements
    assert not any(statement == "select ?" for statement in statements)
    assert all(entry["duration_ms"] >= 0 and entry["role"] == "seachange" for entry in slow)


def test_schema_changes_are_logged_by_stage_and_publication(place):
    with logged(place) as (served, entries), connect(served) as connection:
        run(connection, "create table t (id int primary key, n int)")
        run(connection, "insert into t select i, i from generate_series(1, 500) i")
        run(connection, "create index on t (n)", f"alter table t add column c text default '{SECRET}'", "vacuum t")
    published = [entry["statement"] for entry in of(entries, "schema change published")]
    assert "create index on t (n)" in published
    assert "alter table t add column c text default ?" in published
    stages = [entry for entry in of(entries, "schema change") if entry["statement"] == "create index on t (n)"]
    assert [entry["status"] for entry in stages][-1] == "succeeded"
    assert any("backfill" in entry.get("stage", "") for entry in stages)
    assert SECRET not in json.dumps(entries)


def test_an_internal_error_has_an_id_that_the_client_sees(place):
    with logged(place) as (served, entries), connect(served) as connection:
        run(connection, "create table t (id int primary key)")
        # A part of the node that is missing is an error that nothing expects.
        served.node.exports, exports = None, served.node.exports
        with pytest.raises(psycopg.errors.InternalError_) as caught:
            connection.execute("call seachange.export_iceberg('t')")
        served.node.exports = exports
    (internal,) = of(entries, "internal error")
    assert f"(error id {internal['id']})" in str(caught.value)
    assert "session.py" in internal["trace"]
    assert internal["kind"] == "AttributeError"


def test_a_role_without_the_right_cannot_fill_the_log(place):
    with logged(place) as (served, _), connect(served) as connection:
        run(connection, "create role ann login password 'old'")
        with connect(served, "ann", "old") as other, pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute("set log_min_duration_statement = 0")
