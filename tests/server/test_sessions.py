"""Sessions of all nodes: what they do, for whom they wait, and how another session cancels or ends them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import seachange
from tests.support.serving import Served, serving
from tests.support.workers import wait_until

STATES = "select pid, state, query from pg_stat_activity order by pid"


@pytest.fixture
def west(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as served:
        yield served


@pytest.fixture
def east(tmp_path: Path, west: Served) -> Iterator[Served]:
    with serving(tmp_path) as served:
        yield served


def connect(served: Served, application: str = "") -> psycopg.Connection:
    return psycopg.connect(served.url, autocommit=True, application_name=application)


def test_sessions_of_all_nodes_are_shown_with_what_they_do(west: Served, east: Served):
    with connect(west, "one") as one, connect(east, "two") as two:
        two.execute("begin; select 'in a block'")
        east.node.beat()
        pids = one.info.backend_pid, two.info.backend_pid
        assert pids[0] != pids[1]
        assert one.execute("select pg_backend_pid()").fetchone() == pids[:1]
        shown = one.execute(
            "select application_name, usename, datname, host(client_addr), state, wait_event_type, query,"
            " xact_start is not null, backend_start <= query_start"
            " from pg_stat_activity where pid = any(%s) order by 1",
            ([*pids],),
        ).fetchall()
        who = ("seachange", "seachange", "127.0.0.1")
        assert shown == [
            ("one", *who, "active", None, shown[0][6], True, True),
            ("two", *who, "idle in transaction", "Client", "select 'in a block'", True, True),
        ]
        assert shown[0][6].startswith("select application_name")
        rows = one.execute(
            "select session, role, database, application, state, statement from seachange.sessions where pid = %s",
            pids[1:],
        ).fetchall()
        assert rows == [
            (f"session {pids[1]}", "seachange", "seachange", "two", "idle in transaction", "select 'in a block'")
        ]


def test_a_session_that_waits_is_shown_with_those_that_hold_the_lock(west: Served):
    with ThreadPoolExecutor() as pool, connect(west) as holder, connect(west) as waiter, connect(west) as other:
        holder.execute("create table t (id int primary key, n int); insert into t values (1, 1)")
        holder.execute("begin; select * from t where id = 1 for update")
        waiting = pool.submit(waiter.execute, "update t set n = 2 where id = 1")
        pids = holder.info.backend_pid, waiter.info.backend_pid

        def shown() -> tuple[object, ...] | None:
            return other.execute(
                "select wait_event_type, pg_blocking_pids(pid), state from pg_stat_activity where pid = %s", pids[1:]
            ).fetchone()

        wait_until(lambda: shown() == ("Lock", [pids[0]], "active"), "the wait to be shown")
        view = other.execute("select blocked_by, waits_for from seachange.sessions where pid = %s", pids[1:]).fetchone()
        assert view is not None
        assert (view[0], view[1].startswith("key ")) == (str(pids[0]), True)
        assert other.execute("select pg_cancel_backend(%s)", pids[1:]).fetchone() == (True,)
        with pytest.raises(psycopg.errors.QueryCanceled):
            waiting.result()
        # The session goes on.
        assert waiter.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize("where", ["the same node", "another node"])
def test_a_session_is_ended_with_its_transaction(west: Served, east: Served, where: str):
    own = west if where == "the same node" else east
    with ThreadPoolExecutor() as pool, connect(west) as operator, connect(own) as victim:
        operator.execute("create table t (id int primary key); insert into t values (1)")
        victim.execute("create temporary table passing (id int)")
        victim.execute("begin; delete from t; select * from t for update")
        own.node.beat()
        assert operator.execute("select pg_terminate_backend(%s)", (victim.info.backend_pid,)).fetchone() == (True,)
        own.node.beat()
        # The lock is free when the session has gone.
        pool.submit(operator.execute, "delete from t").result()
        with pytest.raises(psycopg.errors.AdminShutdown):
            victim.execute("select 1")
        wait_until(lambda: not own.server.client_count - (own is west), "the connection to be closed")
        assert operator.execute(
            "select count(*) from seachange.descriptors where table_name = 'passing'"
        ).fetchone() == (0,)
        assert operator.execute("select pg_terminate_backend(%s)", (victim.info.backend_pid,)).fetchone() == (False,)


def test_a_running_statement_of_another_node_is_cancelled(west: Served, east: Served):
    with ThreadPoolExecutor() as pool, connect(west) as operator, connect(east) as busy:
        sleeping = pool.submit(busy.execute, "select pg_sleep(600)")
        pid = busy.info.backend_pid

        def state() -> object:
            east.node.beat()
            return operator.execute("select state from pg_stat_activity where pid = %s", (pid,)).fetchone()

        wait_until(lambda: state() == ("active",), "the statement to be shown")
        assert operator.execute("select pg_cancel_backend(%s)", (pid,)).fetchone() == (True,)
        east.node.beat()
        with pytest.raises(psycopg.errors.QueryCanceled):
            sleeping.result()


def test_a_session_ends_itself(west: Served):
    with connect(west) as own, pytest.raises(psycopg.errors.AdminShutdown):
        own.execute("select pg_terminate_backend(pg_backend_pid())")


def test_sessions_of_other_roles_are_hidden_and_protected(west: Served):
    with connect(west) as superuser:
        superuser.execute("create role ann login; create role bob login; create role chief login in role bob")
        url = west.url.replace("seachange@", "{}@")
        with (
            psycopg.connect(url.format("ann"), autocommit=True) as ann,
            psycopg.connect(url.format("bob"), autocommit=True) as bob,
            psycopg.connect(url.format("chief"), autocommit=True) as chief,
        ):
            bob.execute("select 'secret'")
            seen = "select state, query from pg_stat_activity where pid = %s"
            view = "select state, client_address, statement from seachange.sessions where pid = %s"
            pid = (bob.info.backend_pid,)
            assert ann.execute(seen, pid).fetchone() == (None, "<insufficient privilege>")
            assert ann.execute(view, pid).fetchone() == (None, None, "<insufficient privilege>")
            for each in (chief, superuser):
                assert each.execute(seen, pid).fetchone() == ("idle", "select 'secret'")
            for call in ("pg_cancel_backend", "pg_terminate_backend"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied to"):
                    ann.execute(f"select {call}(%s)", pid)
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="superusers"):
                    chief.execute(f"select {call}(%s)", (superuser.info.backend_pid,))
            assert chief.execute("select pg_terminate_backend(%s)", pid).fetchone() == (True,)


def test_an_embedded_session_is_ended_with_its_next_statement(tmp_path: Path):
    with closing(seachange.connect(tmp_path)) as victim, closing(seachange.connect(tmp_path, autocommit=True)) as other:
        other.execute("create table t (id int primary key)")
        victim.execute("insert into t values (1)")
        (pid,) = victim.execute("select pg_backend_pid()").fetchall()[0]
        assert other.execute("select pg_terminate_backend(%s)", (pid,)).fetchall() == [(True,)]
        for _ in range(2):
            with pytest.raises(seachange.OperationalError) as caught:
                victim.execute("select 1")
            assert caught.value.sqlstate == "57P01"
        with pytest.raises(seachange.OperationalError):
            victim.commit()
        assert other.execute("select count(*) from t").fetchall() == [(0,)]
