"""A server that gets no processor time for longer than its expiry: its clients go on in a new epoch."""

import multiprocessing
import time
from collections.abc import Iterator

import psycopg
import pytest

from seachange.engine.node.node import Node
from tests.support.nodes import HOUR_MS, Place, open_ported_node
from tests.support.servers import ServerProcess, server_process
from tests.support.workers import wait_until

BUSY_PROCESSES = 30
STARVED_SECONDS = 20


@pytest.fixture
def server(place: Place) -> Iterator[ServerProcess]:
    (place.data / "seachange.toml").write_text("[seachange]\nnode_expiry = '2s'\n")
    with server_process(place) as opened:
        yield opened


@pytest.fixture
def observer(server: ServerProcess, place: Place) -> Iterator[Node]:
    """Ends the epochs of silent nodes."""
    node = open_ported_node(place, "observer", HOUR_MS)
    node.jobs.paused = True
    yield node
    node.close()


def end_epoch(server: ServerProcess, observer: Node) -> None:
    """Stops the server until its epoch has ended."""
    server.stop()

    def is_dead() -> bool:
        observer.parts.catalog.expire_nodes()
        return not any(each.live for each in observer.parts.catalog.nodes() if each.name == "served")

    wait_until(is_dead, "the epoch of the server to expire")


def test_connections_go_on_in_a_new_epoch(server: ServerProcess, observer: Node):
    """Both a connection that is made at once and those of before: only the open transaction fails."""
    with server.connect() as old, server.connect(autocommit=False) as cut:
        old.execute("create table t (id int primary key)")
        cut.execute("insert into t values (1)")
        end_epoch(server, observer)
        server.resume()
        with server.connect() as new:
            new.execute("insert into t values (2)")
        old.execute("insert into t values (%s)", (3,))
        with pytest.raises(psycopg.errors.SerializationFailure):
            cut.commit()
        cut.execute("insert into t values (5)")
        cut.commit()
        assert old.execute("select id from t order by id").fetchall() == [(2,), (3,), (5,)]


def test_a_block_begins_in_a_new_epoch(server: ServerProcess, observer: Node):
    """Before the node has learned from anything else that its epoch has ended: the commit would be refused."""
    with server.connect(autocommit=False) as old:
        old.execute("create table t (id int primary key)")
        old.execute("insert into t values (1)")
        old.commit()
        end_epoch(server, observer)
        server.resume()
        assert old.execute("select id from t").fetchall() == [(1,)]
        old.execute("insert into t values (2)")
        old.commit()
        assert old.execute("select id from t order by id").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize(("user", "database"), [("clerk", "seachange"), ("seachange", "shop")])
def test_limited_sessions_log_in_to_a_new_epoch(server: ServerProcess, observer: Node, user: str, database: str):
    """Places of a role and uses of a database are held in the epoch: they are taken again in the new one."""
    with server.connect() as connection:
        connection.execute("create database shop")
        connection.execute("create role clerk login connection limit 1")
        end_epoch(server, observer)
        server.resume()
        with psycopg.connect(server.url, user=user, dbname=database, autocommit=True) as new:
            assert new.execute("select 1 + %s", (1,)).fetchone() == (2,)


def _burn() -> None:
    while True:
        pass


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_statement_is_rejected_while_the_machine_is_busy(server: ServerProcess, observer: Node):
    """New connections and statements in autocommit mode succeed, however often the epoch is lost."""
    busy = [multiprocessing.get_context("spawn").Process(target=_burn, daemon=True) for _ in range(BUSY_PROCESSES)]
    with server.connect() as old:
        old.execute("create table t (id int primary key)")
        for process in busy:
            process.start()
        try:
            deadline = time.monotonic() + STARVED_SECONDS
            count = 0
            while time.monotonic() < deadline:
                count += 2
                observer.parts.catalog.expire_nodes()
                with server.connect() as new:
                    new.execute("insert into t values (%s)", (count,))
                old.execute("insert into t values (%s)", (count + 1,))
        finally:
            for process in busy:
                process.kill()
        assert old.execute("select count(*) from t").fetchone() == (count,)
        epochs = len([each for each in observer.parts.catalog.nodes() if each.name == "served"])
        print(f"{count} statements in {epochs} epochs")
