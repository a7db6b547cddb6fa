"""seachange.statements, the notice of a wait that lasts, and pg_stat_progress_create_index."""

import threading
from functools import partial

import psycopg
import pytest

from tests.support.patience import PATIENCE_S
from tests.support.serving import serving
from tests.support.workers import wait_until


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    data = tmp_path_factory.mktemp("servers") / "shop"
    with serving(data) as here, serving(data) as there:
        yield here, there


def connect(served, user="seachange"):
    return psycopg.connect(served.url.replace("seachange@", f"{user}@"), autocommit=True)


def totals(connection, like):
    return connection.execute(
        "select statement, calls, failures, rows from seachange.statements where statement like %s order by 1", (like,)
    ).fetchall()


def test_statements_are_counted_by_their_text_without_constants(servers):
    with connect(servers[0]) as connection:
        connection.execute("create table counted (id int primary key, name text)")
        for number in range(5):
            connection.execute(
                f"insert into counted values ({number}, 'secret {number}'), ({number + 10}, '')".encode()
            )
        for number in range(3):
            connection.execute("select name from counted where id = %s", (number,))
        connection.execute("select count(*) from counted where id in (1, 2, 3)")
        connection.execute("select count(*) from counted where id in (1, 2, 3, 4)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("insert into counted values (1, ''), (2, '')")
        connection.execute("begin; update counted set name = 'x' where id < 3; commit")
        assert totals(connection, "%counted%") == [
            ("create table counted (id int primary key, name text)", 1, 0, 0),
            ("insert into counted values (?, ...), ...", 6, 1, 10),
            ("select count(*) from counted where id in (?, ...)", 2, 0, 2),
            ("select name from counted where id = $1", 3, 0, 3),
            ("update counted set name = ? where id < ?", 1, 0, 3),
        ]
        (total, mean, longest) = connection.execute(
            "select total_ms, mean_ms, longest_ms from seachange.statements where statement like 'insert into counted%'"
        ).fetchone()
        assert total >= longest >= mean > 0


def test_statements_of_other_nodes_and_of_own_roles_are_shown(servers):
    here, there = servers
    with connect(here) as root, connect(there) as other:
        root.execute("create role reader login")
        other.execute("select 'elsewhere' as elsewhere")
        there.node.beat()
        assert totals(root, "%as elsewhere") == [("select ? as elsewhere", 1, 0, 1)]
        with connect(here, "reader") as reader:
            reader.execute("select 'mine' as mine")
            assert totals(reader, "%as %") == [("select ? as mine", 1, 0, 1)]


def note(notices: list[str], notice: psycopg.errors.Diagnostic) -> None:
    notices.append(notice.message_primary or "")


def test_a_session_that_waits_is_told_for_whom_while_it_waits(servers):
    here, there = servers
    with connect(here) as holder, connect(here) as near, connect(there) as far:
        holder.execute("create table held (id int primary key, n int)")
        holder.execute("insert into held values (1, 0)")
        holder.execute("begin")
        # Sessions of other nodes wait for it, too.
        holder.execute("select n from held for update")
        told: dict[psycopg.Connection, list[str]] = {connection: [] for connection in (near, far)}
        threads = []
        for connection, notices in told.items():
            connection.add_notice_handler(partial(note, notices))
            threads.append(threading.Thread(target=connection.execute, args=("update held set n = n + 1",)))
            threads[-1].start()
        try:
            wait_until(lambda: told[near] and told[far], "both to be told while they wait")
            assert all(thread.is_alive() for thread in threads)
        finally:
            holder.execute("commit")
            for thread in threads:
                thread.join(PATIENCE_S)
        pid = holder.info.backend_pid
        for notices in told.values():
            assert len(notices) == 1
            assert "ExclusiveLock on" in notices[0]
        assert any(f"held by process {pid};" in notice or f"{pid}" in notice for (notice,) in told.values())
        assert holder.execute("select n from held").fetchone() == (2,)


def test_an_index_that_is_built_is_shown_as_in_postgresql(servers):
    with connect(servers[0]) as connection, connect(servers[0]) as other:
        connection.execute("create table built (id int primary key, n int)")
        connection.execute("insert into built select i, i from generate_series(1, 1000) i")
        connection.execute("set seachange.publish = 'manual'")
        (job,) = connection.execute("alter table concurrently built add constraint u unique (n)").fetchone()
        status = "select status from seachange.jobs where id = %s"
        wait_until(lambda: other.execute(status, (job,)).fetchone() == ("ready",), "the job to be ready")
        found = other.execute(
            "select relid::regclass::text, command, datname, tuples_done > 0 from pg_stat_progress_create_index"
        ).fetchall()
        assert found == [("built", "CREATE INDEX CONCURRENTLY", "seachange", True)]
        other.execute("select seachange.publish_job(%s)", (job,))
        wait_until(lambda: other.execute(status, (job,)).fetchone() == ("succeeded",), "the job to end")
        assert other.execute("select count(*) from pg_stat_progress_create_index").fetchone() == (0,)
