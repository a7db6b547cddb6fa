"""Password guessing is slowed down, for the guesser only."""

import psycopg
import pytest

from seachange.server.limits import FREE_FAILURES, MEMORY_US, SPACING_US, Throttle
from tests.support.serving import HOST, serving

WAIT_US_MAX = 3 * SPACING_US


def failed(times: int, at_us: int = 0, address: str = "a") -> Throttle:
    throttle = Throttle()
    for _ in range(times):
        throttle.note_failure(address, at_us)
    return throttle


def test_some_mistakes_are_free():
    throttle = failed(FREE_FAILURES - 1)
    assert [throttle.admit("a", 0, WAIT_US_MAX) for _ in range(10)] == [0] * 10


def test_more_of_them_are_spaced_and_then_refused():
    throttle = failed(FREE_FAILURES)
    waits = [throttle.admit("a", 0, WAIT_US_MAX) for _ in range(6)]
    assert waits == [0, SPACING_US, 2 * SPACING_US, 3 * SPACING_US, None, None]
    # The rate stays the same, however long it goes on.
    assert throttle.admit("a", SPACING_US, WAIT_US_MAX) == 3 * SPACING_US
    assert throttle.admit("b", 0, WAIT_US_MAX) == 0


def test_mistakes_are_forgotten():
    throttle = failed(FREE_FAILURES + 3, at_us=1)
    assert throttle.admit("a", MEMORY_US, WAIT_US_MAX) == 0
    throttle.admit("a", MEMORY_US, WAIT_US_MAX)
    assert [throttle.admit("a", MEMORY_US + 1, WAIT_US_MAX) for _ in range(3)] == [0, 0, 0]


def test_what_is_remembered_is_bounded():
    throttle = Throttle()
    for i in range(12_000):
        throttle.note_failure(str(i), 0)
    assert len(throttle._by_address) == 10_000


def test_the_right_password_waits_as_well(tmp_path):
    with serving(tmp_path, {"seachange": "right"}) as served:
        for _ in range(FREE_FAILURES):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(host=HOST, port=served.port, user="seachange", password="wrong")
        clock = served.node.parts.clock
        begun_us = clock.steady_us()
        for _ in range(3):
            with psycopg.connect(host=HOST, port=served.port, user="seachange", password="right") as connection:
                assert connection.execute("select 1").fetchone() == (1,)
        assert clock.steady_us() - begun_us >= 2 * SPACING_US
