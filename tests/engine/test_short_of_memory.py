"""What other work does beside a statement that uses too much memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from seachange import errors
from seachange.catalog.sqlite.connections import Read, Readers
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.sessions import AskedSession, SessionRequest
from tests.engine.database import open_quiet
from tests.engine.ports import open_hooked
from tests.support.no_threads import no_threads
from tests.support.workers import wait_until

INSERT = "insert into t values (nextval('s'))"


class Large:
    """A statement that has made the process grow too much, until it ends."""

    is_settled = False

    def __init__(self, node: Node) -> None:
        self._watched = node.watchdog.watch(self, 0, 1)
        self._watched.__enter__()
        # The first step notes how large the process is.
        node.watchdog.step(node.parts.clock.steady_us())
        grown = bytearray(b"x") * (64 << 20)
        node.watchdog.step(node.parts.clock.steady_us())
        assert node.watchdog.is_short
        del grown

    def interrupt(self) -> None:
        pass

    def end(self) -> None:
        with pytest.raises(errors.OutOfMemory):
            self._watched.__exit__(None, None, None)


@contextmanager
def two_failures(tmp_path, is_beside_large: bool) -> Iterator[tuple[Session, list[int]]]:
    """A session whose calls for sequence values fail twice, the second time when the large statement has ended."""
    node, catalog = open_hooked(tmp_path)
    session = Session(node)
    session.execute("create sequence s; create table t (id bigint)")
    large = Large(node) if is_beside_large else None
    failures: list[int] = []

    def fail() -> None:
        if len(failures) < 2:
            failures.append(len(failures))
            if len(failures) == 1 and large is not None:
                large.end()
            raise MemoryError

    catalog.before["draw_sequence"] = fail
    yield session, failures
    session.close()
    node.close()


def test_statement_in_autocommit_is_run_again(tmp_path):
    with two_failures(tmp_path, is_beside_large=True) as (session, failures):
        session.execute(INSERT)
        assert failures == [0, 1]
        assert session.execute("select count(*) from t").rows == [(1,)]


def test_statement_without_another_to_blame_fails_with_its_code(tmp_path):
    with two_failures(tmp_path, is_beside_large=False) as (session, failures):
        with pytest.raises(errors.OutOfMemory):
            session.execute(INSERT)
        assert failures == [0]
        assert session.execute("select count(*) from t").rows == [(0,)]


def test_statement_of_a_block_fails_with_its_code(tmp_path):
    with two_failures(tmp_path, is_beside_large=True) as (session, failures):
        session.execute("begin")
        with pytest.raises(errors.OutOfMemory):
            session.execute(INSERT)
        session.execute("rollback")
        assert failures == [0]


def test_requests_to_sessions_wait_for_a_thread(node: Node):
    session = Session(node)
    node.parts.catalog.ask_session(node.epoch.epoch, AskedSession(session.client.actor, SessionRequest.END))
    with no_threads(), pytest.raises(MemoryError):
        node.beat()
    assert session.execute("select 1").rows == [(1,)]
    node.beat()

    def has_ended() -> bool:
        try:
            session.execute("select 1")
        except errors.SessionTerminated:
            return True
        return False

    wait_until(has_ended, "the request to reach the session")
    session.close()


def test_read_that_found_no_memory_ends_without_another_error(tmp_path):
    open_quiet(tmp_path).close()
    readers = Readers(tmp_path / "catalog.sqlite")

    def find_no_memory() -> None:
        with Read(readers) as db:
            # As SQLite does then.
            db.execute("ROLLBACK")
            raise MemoryError

    with pytest.raises(MemoryError):
        find_no_memory()
    with Read(readers) as db:
        assert db.execute("select 1").fetchone() == (1,)
    readers.close()
