"""Requests that the event loop answers itself, and that it leaves waiting work to a thread."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from seachange.engine.session.session import Session
from seachange.runtime.nonblocking import Holding, WouldWait, may_wait, non_blocking
from seachange.server.server import WorkerThreads
from seachange.sql.run.execute import prepare
from tests.support.patience import PATIENCE_S
from tests.support.serving import serving
from tests.support.wire import SYNC, Wire, bind, describe, execute, message, parse, query

BY_KEY = "select n, word from k where id = %s"


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as served:
        with psycopg.connect(served.url, autocommit=True) as connection:
            connection.execute("create table k (id int primary key, n bigint, word text)")
            connection.execute("insert into k select i, i * 2, 'word ' || i from generate_series(1, 100) as s(i)")
        yield served


def connect(served):
    return psycopg.connect(served.url, autocommit=True, prepare_threshold=0)


def test_a_lookup_that_waits_for_a_lock_does_not_block_the_loop(served):
    with connect(served) as one, connect(served) as other, ThreadPoolExecutor(1) as threads:
        for _ in range(3):
            assert one.execute(BY_KEY, (7,)).fetchone() == (14, "word 7")
        with served.node.epoch.lock:
            waiting = threads.submit(lambda: one.execute(BY_KEY, (8,)).fetchone())
            # Empty queries need no transaction, and so not the lock.
            for _ in range(20):
                assert other.execute("").pgresult.status == psycopg.pq.ExecStatus.EMPTY_QUERY
            assert not waiting.done()
        assert waiting.result(PATIENCE_S) == (16, "word 8")


def test_look_ups_see_what_was_committed_before(served):
    with connect(served) as reader, connect(served) as writer:
        for number in range(200):
            writer.execute("update k set n = %s where id = 5", (number,))
            assert reader.execute(BY_KEY, (5,)).fetchone() == (number, "word 5")
        assert reader.execute(BY_KEY, (101,)).fetchone() is None
        writer.execute("alter table k rename column word to text")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            reader.execute(BY_KEY, (5,))
        assert reader.execute("select 1").fetchone() == (1,)


def test_loop_does_not_compile_statements(served):
    session = Session(served.node)
    (prepared,) = prepare("select n from k where id = $1")

    def look_up() -> list[tuple[int]]:
        return list(session.execute_prepared(prepared, (3,)).rows)

    assert look_up() == [(6,)]
    with non_blocking():
        assert look_up() == [(6,)]
    # Constants of the text would be read otherwise.
    session.execute("set timezone = 'Asia/Tokyo'")
    with non_blocking(), pytest.raises(WouldWait):
        look_up()
    assert look_up() == [(6,)]
    with non_blocking():
        assert look_up() == [(6,)]
    session.close()


def test_rows_from_files_and_of_great_length(served):
    with connect(served) as connection:
        connection.execute("update k set word = repeat('x', 3000000) where id = 9")
        connection.execute("vacuum k")
        for key in (9, 1, 9, 2, 9):
            (_, word) = connection.execute(BY_KEY, (key,)).fetchone()
            assert len(word) == (3_000_000 if key == 9 else 6)


def test_repeated_executions_of_a_constant_query_get_equal_answers(served):
    run = bind(statement="s") + describe() + execute() + SYNC
    with Wire(served.port) as wire:
        wire.send(parse("select 1 as one, 'x'", "s") + SYNC)
        wire.until(b"Z")
        answers = [wire.round(run) for _ in range(4)]
        assert all(answer == answers[0] for answer in answers)
        assert [kind for kind, _ in answers[0]] == [b"2", b"T", b"D", b"C", b"Z"]
        wire.round(query("begin"))
        assert wire.round(run)[-1] == (b"Z", b"T")
        wire.round(query("commit"))
        assert wire.code(bind([b"1"], statement="s") + describe() + execute() + SYNC) is not None
        assert wire.code(message(b"B", b"\0s\0") + describe() + execute() + SYNC) == "08P01"
        assert wire.round(run) == answers[0]
        wire.round(query("deallocate s"))
        assert wire.code(run) == "26000"
        wire.send(parse("select 2 as two", "s") + SYNC)
        wire.until(b"Z")
        assert [wire.round(run)[2] for _ in range(3)] == [(b"D", b"\0\1\0\0\0\0012")] * 3


def test_non_blocking_mode_never_waits():
    lock = threading.Lock()
    with non_blocking():
        with Holding(lock), pytest.raises(WouldWait), Holding(lock):
            pass
        with pytest.raises(WouldWait):
            may_wait()
    may_wait()
    assert not lock.locked()


def test_every_piece_of_work_has_a_thread_of_its_own():
    executor = WorkerThreads("test", lambda problem: None)
    together = threading.Barrier(8)
    for _ in range(3):
        for _ in range(7):
            executor.run(lambda: together.wait(PATIENCE_S))
        together.wait(PATIENCE_S)
    executor.run(lambda: 1 / 0)
    assert executor.stop(60)
    assert not any(thread.name.startswith("test_") for thread in threading.enumerate())
