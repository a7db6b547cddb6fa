"""A thread begins whatever the memory of the process is limited to; one that the system refuses is missing memory."""

import resource
import threading

import pytest

from seachange.runtime.memory_wall import MemoryWall
from seachange.runtime.threads import ThreadPool, start_thread, starting_threads
from tests.support.no_threads import no_threads


def data_limits() -> tuple[int, int]:
    return resource.getrlimit(resource.RLIMIT_DATA)


def test_limit_does_not_hold_while_a_thread_begins():
    before = data_limits()
    wall = MemoryWall()
    wall.put_up()
    try:
        limited = data_limits()
        assert limited != before
        with wall.lifted():
            assert data_limits() == before
            with wall.lifted():
                assert data_limits() == before
            assert data_limits() == before
        assert data_limits() == limited
    finally:
        wall.take_down()
    assert data_limits() == before


def test_limit_that_begins_or_ends_meanwhile_is_kept():
    before = data_limits()
    wall = MemoryWall()
    with wall.lifted():
        wall.put_up()
        assert data_limits() == before
    assert data_limits() != before
    with wall.lifted():
        wall.take_down()
    assert data_limits() == before


def test_thread_that_the_system_refuses_is_missing_memory():
    with no_threads(), pytest.raises(MemoryError):
        start_thread(threading.Thread(target=print))
    with ThreadPool(1) as pool:
        with no_threads(), pytest.raises(MemoryError):
            pool.submit(print)
        assert pool.submit(lambda: 1).result() == 1
    with pytest.raises(RuntimeError, match="another reason"), starting_threads():
        raise RuntimeError("another reason")
