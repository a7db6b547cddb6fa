"""Numbers of sessions are unique over all nodes, and those of ended sessions are given again."""

from itertools import pairwise

from seachange import errors
from seachange.engine.replica.open_sessions import OpenSessions
from seachange.model.ids import Epoch
from seachange.model.sessions import AskedSession, SessionRecord, SessionRequest

NUMBERS = 100_000


class Kept:
    """Counts what it is asked for."""

    def __init__(self) -> None:
        self.interrupts = 0
        self.problems: list[errors.Error] = []

    def record(self) -> SessionRecord:
        raise NotImplementedError

    def interrupt(self) -> None:
        self.interrupts += 1

    def tell(self, notice: str) -> None: ...

    def terminate(self, problem: errors.Error) -> None:
        self.problems.append(problem)


def sessions_of(epoch: int) -> OpenSessions:
    sessions = OpenSessions()
    sessions.begin(Epoch(epoch))
    return sessions


def test_numbers_of_nodes_do_not_meet_and_fit_into_31_bits():
    ranges = []
    for epoch in (1, 2, 19_999, 20_000):
        sessions = sessions_of(epoch)
        numbers = [sessions.take_number() for _ in range(NUMBERS - 1)]
        assert len({*numbers}) == NUMBERS - 1
        ranges.append((min(numbers), max(numbers)))
    ranges.sort()
    assert all(low[1] < high[0] for low, high in pairwise(ranges))
    assert ranges[0][0] > 0
    assert ranges[-1][1] < 1 << 31


def test_number_of_an_open_session_is_not_given_again():
    sessions = sessions_of(3)
    kept, number = Kept(), sessions.take_number()
    sessions.open(number, kept)
    assert number not in [sessions.take_number() for _ in range(2 * NUMBERS)]
    sessions.close(number)
    assert number in [sessions.take_number() for _ in range(NUMBERS)]


def test_requests_reach_their_sessions_and_those_that_have_ended_are_left_out():
    sessions = sessions_of(3)
    kept, number = Kept(), sessions.take_number()
    sessions.open(number, kept)
    for request in SessionRequest:
        sessions.answer([AskedSession(number + 1, request), AskedSession(number, request)])
    assert kept.interrupts == 1
    assert [problem.sqlstate for problem in kept.problems] == ["57P01"]
