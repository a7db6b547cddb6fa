"""Ctrl-C ends the statement of an embedded session, also while DuckDB does not return to Python."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread, get_ident

import pytest

import seachange
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.runtime.ctrl_c import CtrlCHeld, calling_at_ctrl_c
from seachange.runtime.faults import FAULTS
from tests.cluster.sqlprocess import REPOSITORY
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

# One task of DuckDB, which takes hours; and endlessly many short ones.
ONE_TASK = "select count(*) from generate_series(1, 100000000000) as g(i) where i % 7 = 3"
MANY_TASKS = (
    "with recursive r (i) as (select 1 union all select i + 1 from r where i < 1000000000) select count(*) from r"
)
INTERRUPTED = 130


def running(cursor: seachange.Cursor) -> int:
    others = "select statement from seachange.sessions where state = 'active' and pid <> pg_backend_pid()"
    cursor.execute(f"select count(*) from ({others}) as s where statement like %s", ("%generate_series%",))
    ((count,),) = cursor.fetchall()
    return int(count)


def test_program_ends(tmp_path: Path):
    with closing(seachange.connect(data=tmp_path, autocommit=True)) as db:
        command = [sys.executable, "-m", "seachange.cli.main", "sql", "--data", str(tmp_path), "-c", ONE_TASK]
        process = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: running(db.cursor()), "the statement to run")
            process.send_signal(signal.SIGINT)
            _, complaints = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == INTERRUPTED
    assert "Traceback" not in complaints


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    node = open_node(tmp_path)
    session = Session(node)
    yield session
    session.close()
    node.close()


@pytest.mark.parametrize("text", [ONE_TASK, MANY_TASKS])
def test_statement_ends_and_the_session_goes_on(session: Session, text: str):
    main = get_ident()

    def press() -> None:
        wait_until(lambda: session._guard.is_running, "the statement to run")
        signal.pthread_kill(main, signal.SIGINT)

    presser = Thread(target=press)
    presser.start()
    with calling_at_ctrl_c(session.interrupt), pytest.raises(KeyboardInterrupt):
        session.execute(text)
    presser.join()
    assert session.execute("select 1").rows == [(1,)]


def test_other_signals_call_nothing():
    called = Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with calling_at_ctrl_c(called.set):
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not called.is_set()


def test_commit_is_not_cut_short(tmp_path: Path):
    """Ctrl-C under the lock of the catalog: all writers of the machine would wait for it."""
    went_on: list[bool] = []

    def press() -> None:
        signal.raise_signal(signal.SIGINT)
        went_on.append(True)

    with closing(seachange.connect(data=tmp_path)) as db:
        db.execute("create table t (id int primary key)")
        db.commit()
        db.execute("insert into t values (1)")
        FAULTS.arm("commit.written", press)
        try:
            with pytest.raises(KeyboardInterrupt):
                db.commit()
        finally:
            FAULTS.disarm()
        assert went_on
        db.rollback()
        db.execute("insert into t values (2)")
        db.commit()
        assert db.execute("select id from t order by id").fetchall() == [(1,), (2,)]


def test_program_that_handles_ctrl_c_itself_is_left_alone(session: Session):
    told: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: told.append(number))
    try:
        with CtrlCHeld(session.interrupt):
            signal.raise_signal(signal.SIGINT)
            assert told == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_third_press_is_raised_at_once():
    raised: list[bool] = []

    def press() -> None:
        for _ in range(3):
            raised.append(False)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), CtrlCHeld(Event().set):
        press()
    assert len(raised) == 3


def test_other_threads_get_no_signals():
    def work() -> None:
        with CtrlCHeld(failed.set):
            kept.append(signal.getsignal(signal.SIGINT))

    failed, kept = Event(), list[object]()
    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert kept == [signal.getsignal(signal.SIGINT)]
