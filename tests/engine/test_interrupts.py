"""Statements are ended in their Python phases too: loops over rows, checks, waits, commits."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seachange import errors
from seachange.engine.context.interrupts import ROWS_PER_CHECK, SessionInterrupts
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.database import open_quiet
from tests.support.nodes import HOUR_S
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

# As many as are changed one by one, and as many as are changed by segments.
FEW, MANY = 9_000, 300_000


class Running:
    """A statement in a thread of its own."""

    def __init__(self, session: Session, text: str) -> None:
        self.problem: errors.Error | None = None
        self._thread = threading.Thread(target=self._run, args=(session, text), daemon=True)
        self._thread.start()

    def _run(self, session: Session, text: str) -> None:
        try:
            session.execute(text)
        except errors.Error as problem:
            self.problem = problem

    def sqlstate(self) -> Any:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return None if self.problem is None else self.problem.sqlstate


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = open_quiet(Path(tmp_path_factory.mktemp("interrupts")))
    session = Session(node)
    for name, rows in (("few", FEW), ("many", MANY)):
        session.execute(f"create table {name} (id int primary key, n int, s text, check (n >= 0))")
        session.execute(f"create unique index on {name} (s)")
        session.execute(f"create index on {name} (n)")
        session.execute(f"insert into {name} select i, 0, 'row ' || i from generate_series(1, {rows}) as g(i)")
    session.close()
    yield node
    node.close()


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    session = Session(node)
    yield session
    session.close()


def buffered(session: Session) -> int:
    transaction = session.open_transaction
    return 0 if transaction is None else sum(len(b.entries) for b in transaction.state.buffer.indexes.values())


def test_interrupts_are_heard_at_the_next_look() -> None:
    interrupts = SessionInterrupts()
    seen: list[int] = []

    def work() -> None:
        for n in interrupts.each(range(10 * ROWS_PER_CHECK)):
            seen.append(n)
            if n == 10:
                interrupts.set()

    with pytest.raises(errors.QueryCanceled):
        work()
    assert len(seen) == ROWS_PER_CHECK
    interrupts.clear()
    assert list(interrupts.each([1, 2])) == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "update few set n = n + 1",
        "update few set id = -id",
        "delete from few",
        f"insert into few select -i, 0, 'new ' || i from generate_series(1, {FEW}) as g(i)",
    ],
)
def test_a_loop_over_rows_is_cut(session: Session, text: str):
    session.execute("begin")
    session.execute("select 1")
    running = Running(session, text)
    wait_until(lambda: buffered(session), "the loop to begin")
    session.interrupt()
    assert running.sqlstate() == "57014"
    # Nothing of it is left.
    with pytest.raises(errors.InFailedTransaction):
        session.execute("select 1")
    session.execute("rollback")
    assert session.execute("select count(*), sum(n) from few where id > 0").rows == [(FEW, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "update many set n = n + 1",
        "delete from many",
        f"insert into many select -i, 0, 'new ' || i from generate_series(1, {MANY}) as g(i)",
    ],
)
def test_a_bulk_change_is_cut(session: Session, text: str):
    running = Running(session, text)
    wait_until(lambda: session.client.interrupts.reaches, "the sorter to begin")
    session.interrupt()
    assert running.sqlstate() == "57014"
    assert session.execute("select count(*), sum(n) from many where id > 0").rows == [(MANY, 0)]


def test_statement_timeout_cuts_a_loop_over_rows(session: Session):
    session.execute("set statement_timeout = 50")
    with pytest.raises(errors.QueryCanceled) as caught:
        session.execute("update few set n = n + 1")
    assert "statement timeout" in str(caught.value)
    session.execute("set statement_timeout = 0")
    assert session.execute("select sum(n) from few").rows == [(0,)]


def test_an_interrupt_of_a_closed_session_does_nothing(node: Node):
    """The cancel of a client may come while its connection is closed."""
    session = Session(node)
    session.close()
    session.interrupt()


def test_an_interrupt_between_statements_hits_none(session: Session):
    session.interrupt()
    assert session.execute("select 1").rows == [(1,)]


def test_what_has_committed_is_not_reported_as_cancelled(session: Session, node: Node):
    """The time limit passes while the commit is on its way: it has happened, and is reported so."""

    class SlowCatalog:
        def __init__(self, catalog: Any) -> None:
            self._catalog = catalog

        def __getattr__(self, name: str) -> Any:
            return getattr(self._catalog, name)

        def commit(self, *arguments: Any) -> Any:
            outcomes = self._catalog.commit(*arguments)
            node.watchdog.step(node.parts.clock.steady_us() + HOUR_S * 1_000_000)
            assert session.client.interrupts.is_set
            return outcomes

    committer = node.epoch.committer
    catalog = committer._catalog
    session.execute("create table u (id int primary key)")
    session.execute("set statement_timeout = '50min'")
    committer._catalog = SlowCatalog(catalog)
    try:
        session.execute("insert into u values (1)")
    finally:
        committer._catalog = catalog
    session.execute("set statement_timeout = 0")
    assert session.execute("select * from u").rows == [(1,)]


def test_a_setting_that_has_changed_is_not_reported_as_cancelled(session: Session):
    """The time limit passes while it is set: the statement after it, which ends the limit, would fail as well."""

    class SlowSettings:
        def __init__(self, settings: Any) -> None:
            self._settings = settings

        def __getattr__(self, name: str) -> Any:
            return getattr(self._settings, name)

        def set(self, *arguments: Any, **options: Any) -> None:
            wait_until(lambda: session.client.interrupts.is_set, "the time limit to pass")
            self._settings.set(*arguments, **options)

    settings = session.settings
    session.execute("set statement_timeout = 50")
    session.settings = SlowSettings(settings)  # type: ignore[assignment]
    try:
        session.execute("set statement_timeout = 0")
    finally:
        session.settings = settings
    assert session.execute("show statement_timeout").rows == [("0",)]


def test_a_cancel_that_comes_before_the_wait_is_heard(session: Session, node: Node):
    """The cancel finds no waiter yet."""
    holder = Session(node)
    holder.execute("begin")
    holder.execute("update few set n = 0 where id = 1")
    owner = (9_999, 0)
    interrupts = SessionInterrupts()
    interrupts.set()
    transaction = holder.open_transaction
    assert transaction is not None
    (key,) = list(node.epoch.locks._held[transaction.state.write_locks.owner])[:1]
    acquire: Callable[..., bool] = node.epoch.locks.acquire
    with pytest.raises(errors.QueryCanceled):
        acquire(type(transaction.state.write_locks.owner)(*owner), key, 4, interrupts=interrupts)
    holder.execute("rollback")
    holder.close()
