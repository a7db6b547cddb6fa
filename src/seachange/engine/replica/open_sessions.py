"""The sessions of a node: their numbers, and what one session asks of another.

**Invariant:** no two open sessions have the same number, on all nodes whose first epochs are less than 20,000 apart: a
number begins with the first epoch of its node, and is given again only when its session has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Protocol
from weakref import WeakValueDictionary

from seachange import errors
from seachange.model.ids import Epoch
from seachange.model.sessions import AskedSession, SessionRecord, SessionRequest

# Numbers fit into 31 bits, as clients expect of a process number.
_NUMBERS = 100_000
_NODES = 20_000


@dataclass(frozen=True, slots=True)
class ClientLink:
    """How a node reaches the client of a session from any thread. `report` shows it a notice before the end of its
    statement, if it can; `end` closes its connection with an error. Neither waits nor fails."""

    report: Callable[[str], bool] = lambda notice: False
    end: Callable[[errors.Error], None] = lambda problem: None
    address: str = ""
    port: int = -1


EMBEDDED = ClientLink()


class OpenSession(Protocol):
    """A session, as other threads may use it."""

    def record(self) -> SessionRecord: ...

    def interrupt(self) -> None: ...

    def tell(self, notice: str) -> None:
        """Shows a notice to its client, before the end of the running statement if the client can."""

    def terminate(self, problem: errors.Error) -> None:
        """Ends the running statement, and then the session."""


class OpenSessions:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first = 0
        self._last = 0
        # A program that forgets to close a session does not keep it here.
        self._sessions: WeakValueDictionary[int, OpenSession] = WeakValueDictionary()

    def begin(self, epoch: Epoch) -> None:
        """`epoch` is the first one of the node."""
        self._first = epoch % _NODES * _NUMBERS

    def take_number(self) -> int:
        with self._lock:
            if len(self._sessions) >= _NUMBERS - 1:
                raise errors.TooManyConnections(count=len(self._sessions))
            numbers = chain(range(self._last + 1, _NUMBERS), range(1, self._last + 1))
            self._last = next(number for number in numbers if self._first + number not in self._sessions)
            return self._first + self._last

    def open(self, number: int, session: OpenSession) -> None:
        with self._lock:
            self._sessions[number] = session

    def close(self, number: int) -> None:
        with self._lock:
            self._sessions.pop(number, None)

    def tell(self, number: int, notice: str) -> None:
        with self._lock:
            session = self._sessions.get(number)
        if session is not None:
            session.tell(notice)

    def records(self) -> list[SessionRecord]:
        with self._lock:
            sessions = list(self._sessions.values())
        return [session.record() for session in sessions]

    def answer(self, asked: Iterable[AskedSession]) -> None:
        """Does what was asked; sessions that have ended are left out."""
        for number, request in asked:
            with self._lock:
                session = self._sessions.get(number)
            match request:
                case _ if session is None:
                    continue
                case SessionRequest.CANCEL:
                    session.interrupt()
                case SessionRequest.END:
                    session.terminate(errors.SessionTerminated())
