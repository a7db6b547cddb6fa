"""Jobs as SQL shows them: views, functions, and the short statements that stand for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import seachange
from seachange.engine.session.session import Session
from seachange.errors import Error
from seachange.sql.port.system_columns import SYSTEM_VIEWS


@pytest.fixture
def db(tmp_path: Path) -> Iterator[seachange.Connection]:
    with seachange.connect(str(tmp_path)) as connection:
        connection.autocommit = True
        run(connection, "create table t (id int primary key, a int, b text)")
        run(connection, "insert into t select i, i % 10, 'x' || i from generate_series(1, 100) g(i)")
        yield connection


def run(db: seachange.Connection, sql: str, values: Any = None) -> list[tuple[Any, ...]]:
    cursor = db.cursor()
    cursor.execute(sql, values)
    return cursor.fetchall() if cursor.description else []


def refuse(db: seachange.Connection, sql: str) -> Error:
    with pytest.raises(Error) as caught:
        run(db, sql)
    return caught.value


def session_of(db: seachange.Connection) -> Session:
    return db._session


def test_a_statement_waits_for_its_job(db: seachange.Connection):
    run(db, "create index t_a on t (a)")
    assert run(db, "select count(*) from t where a = 3") == [(10,)]
    shown = "select id, statement, status, progress, rows_done, rows_total, stage, error from seachange.jobs"
    assert run(db, shown) == [(1, "create index t_a on t (a)", "succeeded", 1.0, 100, 100, "", None)]
    stages = run(db, "select stage from seachange.job_stages where job_id = 1 order by number")
    assert stages == [("drain",), ("backfill",), ("mutation",)]


def test_a_failure_is_reported_reverted_and_recorded(db: seachange.Connection):
    problem = refuse(db, "create unique index t_u on t (a)")
    assert problem.sqlstate == "23505"
    assert "t_u" in str(problem)
    assert run(db, "select status, sqlstate, error = %s from seachange.jobs", (str(problem),)) == [
        ("failed", "23505", True)
    ]
    assert run(db, "select element, name from seachange.descriptors where name = 't_u'") == []
    run(db, "insert into t values (1000, 1, 'more')")
    # The name is free again.
    run(db, "create index t_u on t (a)")
    assert run(db, "select count(*) from t where a = 1") == [(11,)]


@pytest.mark.parametrize(
    "sql",
    [
        "create index concurrently t_c on t (a)",
        "alter table concurrently t add constraint t_c unique (b)",
        "drop index concurrently t_old",
        "alter table concurrently t add column c int",
    ],
)
def test_asynchronous_statements_give_the_id_of_their_job(db: seachange.Connection, sql: str):
    run(db, "create index t_old on t (b)")
    run(db, "set seachange.concurrently = 'async'")
    ((job_id,),) = run(db, sql)
    # A change that depends on it waits.
    run(db, "alter table t add column later int")
    assert run(db, f"select status from seachange.jobs where id = {job_id}") == [("succeeded",)]


def test_concurrently_waits_unless_async(db: seachange.Connection):
    assert run(db, "create index concurrently t_c on t (a)") == []
    assert run(db, "select status from seachange.jobs") == [("succeeded",)]


def test_short_statements(db: seachange.Connection):
    run(db, "create index t_a on t (a)")
    assert run(db, "show jobs") == run(db, "show job 1") == run(db, "select * from seachange.jobs")
    assert run(db, "show job 2") == []
    assert [row[:2] for row in run(db, "show layouts from t")] == [("public", "t")]
    assert {row[6] for row in run(db, "show leases")} == {"t"}


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel"])
def test_what_is_over_cannot_be_changed(db: seachange.Connection, verb: str):
    run(db, "create index t_a on t (a)")
    assert refuse(db, f"{verb} job 1").sqlstate == "55000"
    assert refuse(db, f"select seachange.{verb}_job(1)").sqlstate == "55000"
    assert refuse(db, f"{verb} job 77").sqlstate == "42704"
    assert refuse(db, f"{verb} job x").sqlstate == "42601"
    assert run(db, f"select seachange.{verb}_job(null)") == [(None,)]


@pytest.mark.parametrize("view", SYSTEM_VIEWS)
def test_views_can_be_joined_and_not_changed(db: seachange.Connection, view: str):
    run(db, "create index t_a on t (a)")
    ((count,),) = run(db, f"select count(*) from seachange.{view}")
    # No session waits, the data is in a folder, and nothing was created.
    assert count > 0 or view in ("waits", "cache", "shapes", "feeds")
    # The first query is a statement that has run.
    grown = count + (view == "statements")
    assert run(db, f"select count(*) from seachange.{view} v join t on t.id = 1") == [(grown,)]
    assert refuse(db, f"delete from seachange.{view}").sqlstate == "55000"
    assert refuse(db, f"select * from seachange.{view}_not").sqlstate == "42P01"


def test_leases_name_sessions_and_the_versions_that_they_hold(db: seachange.Connection, tmp_path: Path):
    with seachange.connect(str(tmp_path)) as other:
        run(other, "insert into t values (200, 1, 'open')")
        run(db, "alter table t add column c int")
        session_of(db).node.beat()
        held = "select session, newest_version - version from seachange.leases where session is not null"
        assert run(db, held) == [(session_of(other).client.name, 1)]
        other.rollback()
    session_of(db).node.beat()
    assert run(db, held) == []


def test_the_history_tells_every_step(db: seachange.Connection):
    run(db, "create index t_a on t (a)")
    told = [event for (event,) in run(db, "select event from seachange.events where job_id = 1 order by seq")]
    assert told[0].startswith("began: create index")
    assert told[-1] == "succeeded"
